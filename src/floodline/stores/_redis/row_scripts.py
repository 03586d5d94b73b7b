"""The row logs on the server.

The logs of a session are listed in a sorted set `L…`. Of each log `z…` has the places of its rows
(by number, and by key where numbers are equal, as sorted sets order them), `d…` their dates and
data, and `h…` the last number and the bytes. All rows are judged before the first is written.
"""

from __future__ import annotations

LOGS = """
local function log_key(k, log) return #k .. ':' .. k .. log end
local function count_log(rows, bytes)
  if rows ~= 0 then redis.call('HINCRBY', meta, 'log_rows', rows) end
  if bytes ~= 0 then redis.call('HINCRBY', meta, 'log_bytes', bytes) end
end
local function empty_log(lk)
  local rows = redis.call('ZCARD', P .. 'z' .. lk)
  local bytes = tonumber(redis.call('HGET', P .. 'h' .. lk, 'bytes')) or 0
  redis.call('UNLINK', P .. 'z' .. lk, P .. 'd' .. lk)
  count_log(-rows, -bytes)
  return rows
end
local function forget_logs(k)
  for _, log in ipairs(redis.call('ZRANGE', P .. 'L' .. k, 0, -1)) do
    local lk = log_key(k, log)
    empty_log(lk)
    redis.call('DEL', P .. 'h' .. lk)
  end
  redis.call('DEL', P .. 'L' .. k)
end
local function data_of(packed)
  return string.sub(packed, string.find(packed, ':', 1, true) + 1)
end
"""

APPEND = """
local function read_appends(i)
  local appends = {}
  local left = tonumber(ARGV[i]) or 0
  i = i + 1
  while left > 0 do
    local one = {log = ARGV[i], max_rows = tonumber(ARGV[i + 1]), max_bytes = tonumber(ARGV[i + 2]),
      full = ARGV[i + 3], taken = ARGV[i + 4], rows = {}}
    local n = tonumber(ARGV[i + 5])
    i = i + 6
    for r = 1, n do
      one.rows[r] = {key = ARGV[i], number = ARGV[i + 1], data = ARGV[i + 2]}
      i = i + 3
    end
    appends[#appends + 1] = one
    left = left - 1
  end
  return appends, i
end
local function over(one, rows, bytes)
  return (one.max_rows and rows > one.max_rows) or (one.max_bytes and bytes > one.max_bytes)
end
local function refused_rows(k, appends)
  local staged, sizes = {}, {}
  for _, one in ipairs(appends) do
    local lk = log_key(k, one.log)
    local size = sizes[one.log] or {redis.call('ZCARD', P .. 'z' .. lk),
      tonumber(redis.call('HGET', P .. 'h' .. lk, 'bytes')) or 0}
    one.changes = {}
    for _, row in ipairs(one.rows) do
      local place = log_key(one.log, row.key)
      local old = staged[place]
      if old == nil then
        local packed = redis.call('HGET', P .. 'd' .. lk, row.key)
        old = packed and data_of(packed)
      end
      if not (old and (old == row.data or one.taken == 'keep')) then
        if old and one.taken == 'refuse' then return {2, 'taken', one.log, row.key} end
        staged[place] = row.data
        one.changes[#one.changes + 1] = row
        size = {size[1] + (old and 0 or 1), size[2] + #row.data - #(old or '')}
      end
    end
    sizes[one.log] = size
    if #one.changes > 0 and one.full == 'refuse' and over(one, size[1], size[2]) then
      return {2, 'full', one.log, text(size[1]), text(size[2])}
    end
  end
end
local function write_rows(k, appends, at)
  local written = 0
  for _, one in ipairs(appends) do
    if #one.changes > 0 then
      local lk = log_key(k, one.log)
      local z, d, h = P .. 'z' .. lk, P .. 'd' .. lk, P .. 'h' .. lk
      local head = redis.call('HMGET', h, 'last', 'bytes')
      local last, before = tonumber(head[1]) or -1, tonumber(head[2]) or 0
      local bytes, rows = before, redis.call('ZCARD', z)
      local rows_before = rows
      for _, row in ipairs(one.changes) do
        local old = redis.call('HGET', d, row.key)
        if old then
          bytes = bytes - #data_of(old)
        else
          local number = tonumber(row.number) or last + 1
          last = math.max(last, number)
          redis.call('ZADD', z, text(number), row.key)
          rows = rows + 1
        end
        redis.call('HSET', d, row.key, at .. ':' .. row.data)
        bytes = bytes + #row.data
        written = written + 1
      end
      while one.full == 'drop' and over(one, rows, bytes) do
        local oldest = redis.call('ZRANGE', z, 0, 0)[1]
        bytes = bytes - #data_of(redis.call('HGET', d, oldest))
        rows = rows - 1
        redis.call('ZREM', z, oldest)
        redis.call('HDEL', d, oldest)
      end
      redis.call('HSET', h, 'last', text(last), 'bytes', text(bytes))
      redis.call('ZADD', P .. 'L' .. k, 0, one.log)
      count_log(rows - rows_before, bytes - before)
    end
  end
  return written
end
local function packed_rows(appends)
  local parts, n = {}, 0
  local function add(code, bytes)
    parts[#parts + 1] = code .. struct.pack('>I4', #bytes) .. bytes
  end
  for _, one in ipairs(appends) do
    for _, row in ipairs(one.rows) do
      n = n + 1
      parts[#parts + 1] = '\\147'
      add('\\219', one.log)
      add('\\219', row.key)
      add('\\198', row.data)
    end
  end
  return '\\221' .. struct.pack('>I4', n) .. table.concat(parts)
end
local function keep_rows(name, id, at, why, appends)
  if #appends > 0 then keep('conflicts', name, id, at, why, packed_rows(appends), '') end
end
"""

APPEND_ROWS = """
local name, id, fence, create, lost, at = unpack(ARGV, 3, 8)
local k = key(name, id)
local appends = read_appends(9)
redis.call('HINCRBY', meta, 'writes', 1)
if at == '' then at = text(now) end
if fence ~= '' and fence_at(k) ~= fence then
  keep_rows(name, id, at, lost, appends)
  return {0}
end
local there = redis.call('EXISTS', P .. 'v' .. k) == 1
if not there and create ~= '1' then return {3} end
local refused = refused_rows(k, appends)
if refused then return refused end
if not there then
  local new = text(math.max(figure('base'), figure('floor')) + 1)
  redis.call('MSET', P .. 'v' .. k, new .. ' 0\\n' .. new .. ' \\n', P .. 'e' .. k, '')
  note_id(name, id)
  count(1, 0)
end
used(name, id)
return {1, write_rows(k, appends, at)}
"""

GET_ROWS = """
local k = key(ARGV[3], ARGV[4])
local lk, found = log_key(k, ARGV[5]), {}
for i = 6, #ARGV do
  local packed = redis.call('HGET', P .. 'd' .. lk, ARGV[i])
  if packed then
    found[#found + 1] = {ARGV[i], redis.call('ZSCORE', P .. 'z' .. lk, ARGV[i]), packed}
  end
end
return found
"""

ROWS = """
local name, id, log, after, before, limit, newest = unpack(ARGV, 3)
local lk, found = log_key(key(name, id), log), {}
local z = P .. 'z' .. lk
local first, last = 0, redis.call('ZCARD', z)
local function rank(place) return redis.call('ZRANK', z, string.sub(place, 2)) end
if string.sub(after, 1, 1) == '#' then
  first = redis.call('ZCOUNT', z, '-inf', string.sub(after, 2))
elseif after ~= '' then
  first = rank(after)
  if not first then return {0, string.sub(after, 2)} end
  first = first + 1
end
if string.sub(before, 1, 1) == '#' then
  last = redis.call('ZCOUNT', z, '-inf', '(' .. string.sub(before, 2))
elseif before ~= '' then
  last = rank(before)
  if not last then return {0, string.sub(before, 2)} end
end
limit = tonumber(limit)
if newest == '1' then first = math.max(first, last - limit) end
last = math.min(last, first + limit)
if first >= last then return {1, {}} end
local page = redis.call('ZRANGE', z, first, last - 1, 'WITHSCORES')
for i = 1, #page, 2 do
  found[#found + 1] = {page[i], page[i + 1], redis.call('HGET', P .. 'd' .. lk, page[i])}
end
return {1, found}
"""

LIST_LOGS = """
local name, id, after, limit = unpack(ARGV, 3)
local k, found = key(name, id), {}
for _, log in ipairs(redis.call('ZRANGEBYLEX', P .. 'L' .. k, '(' .. after, '+')) do
  if #found >= tonumber(limit) then break end
  local lk = log_key(k, log)
  local rows = redis.call('ZCARD', P .. 'z' .. lk)
  if rows > 0 then
    found[#found + 1] = {log, rows, redis.call('HGET', P .. 'h' .. lk, 'bytes')}
  end
end
return found
"""

COUNT_ROWS = """
local k, rows = key(ARGV[3], ARGV[4]), 0
if ARGV[5] ~= '' then return redis.call('ZCARD', P .. 'z' .. log_key(k, ARGV[5])) end
for _, log in ipairs(redis.call('ZRANGE', P .. 'L' .. k, 0, -1)) do
  rows = rows + redis.call('ZCARD', P .. 'z' .. log_key(k, log))
end
return rows
"""

DELETE_ROWS = """
local name, id, fence, log, all = unpack(ARGV, 3, 7)
local k, gone = key(name, id), 0
if fence ~= '' and fence_at(k) ~= fence then return -1 end
if all == '1' then
  local logs = log == '' and redis.call('ZRANGE', P .. 'L' .. k, 0, -1) or {log}
  for _, one in ipairs(logs) do
    local lk = log_key(k, one)
    local rows = empty_log(lk)
    if rows > 0 then redis.call('HSET', P .. 'h' .. lk, 'bytes', 0) end
    gone = gone + rows
  end
  return gone
end
local lk, bytes = log_key(k, log), 0
for i = 8, #ARGV do
  local old = redis.call('HGET', P .. 'd' .. lk, ARGV[i])
  if old then
    gone, bytes = gone + 1, bytes + #data_of(old)
    redis.call('HDEL', P .. 'd' .. lk, ARGV[i])
    redis.call('ZREM', P .. 'z' .. lk, ARGV[i])
  end
end
if gone > 0 then redis.call('HINCRBY', P .. 'h' .. lk, 'bytes', -bytes) end
count_log(-gone, -bytes)
return gone
"""
