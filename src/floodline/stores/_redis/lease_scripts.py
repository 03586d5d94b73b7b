"""The scripts of leases: giving, keeping and ending them, and telling who waits.

A heartbeat is a hash `b…`; a lease with a field `b` lasts as long as its owner's heartbeat of that
number. `w` says that somebody waits for the lease, `h` that its owner hears who wants it; both are
told on the channel `leases`.
"""

from __future__ import annotations

SCHEMA = 1

LEASES = """
local function held(since, till, at)
  return tonumber(since) <= now + SLACK and tonumber(till) > at
end
local function say(what, about)  -- a user without a right to the channel works all the same
  redis.pcall('PUBLISH', P .. 'leases', what .. about)
end
local function leased(k, at)
  local lease = redis.call('HMGET', P .. 'l' .. k, 'o', 's', 'u', 'b', 'h', 'w')
  if not lease[1] then return lease end
  if held(lease[2], lease[3], at) then return lease, lease[3] end
  if not lease[4] then return lease end
  local beat = redis.call('HMGET', P .. 'b' .. lease[1], 's', 'u', 'n')
  return lease, beat[3] == lease[4] and held(beat[1], beat[2], at) and beat[2]
end
local function unlease(k, waited, owner)
  redis.call('DEL', P .. 'l' .. k)
  redis.call('ZREM', P .. 'leases', k)
  if waited then
    redis.call('SREM', P .. 'wanted:' .. owner, k)
    say('f', k)
  end
end
"""

ACQUIRE = f"""
local n, i, out, blobs, places = (#ARGV - 2) / 7, 3, {{}}, {{''}}, {{}}
local since, fence = text(now)
while i <= #ARGV do
  local name, id, owner, lease, known, dead, hears = unpack(ARGV, i, i + 6)
  i = i + 7
  local k = key(name, id)
  local l, r = P .. 'l' .. k, P .. 'r' .. k
  local present, alive = leased(k, now)
  if alive and present[1] ~= owner and present[1] ~= dead then
    local asked = P .. 'wanted:' .. present[1]
    redis.call('HSET', l, 'w', '1')
    if redis.call('SADD', asked, k) == 1 and present[5] then say('w', present[1]) end
    redis.call('EXPIRE', asked, 3600)
    out[#out + 1] = '0 ' .. text(alive - now) .. ' 0'
    blobs[#blobs + 1] = present[1]
  else
    if fence then
      fence = fence + 1
    else
      local noted, clock = redis.call('HMGET', meta, 'schema', 'fence'), now
      if ARGV[1] ~= '' then clock = time() end
      if not noted[1] then redis.call('HSET', meta, 'schema', {SCHEMA}, 'base', text(clock)) end
      fence = math.max((tonumber(noted[2]) or 0) + 1, clock)
      redis.call('HSET', meta, 'fence', text(fence + n - 1))  -- of all, before any is given
    end
    local mine, till = text(fence), text(now + lease)
    if present[1] then
      redis.call('HDEL', l, 'b', 'h')
      redis.call('SREM', P .. 'wanted:' .. present[1], k)
    end
    if hears == '1' then
      redis.call('HSET', l, 'o', owner, 'f', mine, 's', since, 'u', till, 'h', '1')
    else
      redis.call('HSET', l, 'o', owner, 'f', mine, 's', since, 'u', till)
    end
    places[#places + 1] = till
    places[#places + 1] = k
    local version = redis.call('HGET', r, 'v')
    if version and version ~= known then
      out[#out + 1] = '2 ' .. mine .. ' ' .. version
      blobs[#blobs + 1] = redis.call('HGET', r, 'e')
    else
      out[#out + 1] = '1 ' .. mine .. ' ' .. (version or '0')
    end
  end
end
if places[1] then redis.call('ZADD', P .. 'leases', unpack(places)) end
blobs[1] = table.concat(out, ' ')
return blobs
"""

RENEW = """
local name, owner, lease, number, last, new = unpack(ARGV, 3, 8)
local beat, till = redis.call('HMGET', P .. 'b' .. owner, 's', 'u'), text(now + lease)
local stopped = not (beat[1] and held(beat[1], beat[2], now))
redis.call('HSET', P .. 'b' .. owner, 's', text(now), 'u', till)
if last == '1' then redis.call('HSET', P .. 'b' .. owner, 'n', number) end
redis.call('ZADD', P .. 'beats', till, owner)
for _, old in ipairs(redis.call('ZRANGEBYSCORE', P .. 'beats', '-inf', text(now - 3600000000),
    'LIMIT', 0, 100)) do
  redis.call('DEL', P .. 'b' .. old)
  redis.call('ZREM', P .. 'beats', old)
end
local lost = {stopped and 1 or 0}
for i = 9, #ARGV, 2 do
  local k = key(name, ARGV[i])
  local present = redis.call('HMGET', P .. 'l' .. k, 'o', 'f', 'w')
  local ours = present[1] == owner and present[2] == ARGV[i + 1]
  if i >= 9 + 2 * new then
    if ours then unlease(k, present[3], owner) end
  elseif ours then
    redis.call('HSET', P .. 'l' .. k, 's', text(now), 'u', till, 'b', number)
    redis.call('ZADD', P .. 'leases', till, k)
  else
    lost[#lost + 1] = ARGV[i]
  end
end
return lost
"""

WANTED = """
local name, owner = unpack(ARGV, 3)
local asked, found, of = P .. 'wanted:' .. owner, {}, key(name, '')
for _, k in ipairs(redis.call('SMEMBERS', asked)) do
  if string.sub(k, 1, #of) == of and redis.call('HGET', P .. 'l' .. k, 'o') == owner then
    found[#found + 1] = string.sub(k, #of + 1)
  end
end
redis.call('DEL', asked)
return found
"""

RELEASE = """
local name, id, fence = unpack(ARGV, 3)
local k = key(name, id)
local lease = redis.call('HMGET', P .. 'l' .. k, 'f', 'w', 'o')
if lease[1] ~= fence then return 0 end
unlease(k, lease[2], lease[3])
if redis.call('EXISTS', P .. 'r' .. k) == 1 then used(name, id) end
return 1
"""
