"""The scripts that run on the server: each is one operation, done whole or not at all.

`acquire` and `save` serve any number of callers at once: what starting a script costs, and what is
the same for all, they share. See `batches` for their arguments and their replies.

All keys share a hash tag and begin with it. A row is two strings: `e…` is its envelope, and `v…`
has its version, the length of the envelope, and a line for each of the last writes, newest first.
A lease is a string `l…`. Strings can be read and written many at a time, and to call a command
costs a script more than the command does. `ids:` and `used:` are the sorted sets of one name, by
id and by last use. No row expires by itself: retention has a floor and indexes to keep. Times are
whole microseconds, as strings: a script's numbers are doubles, and exact up to 2**53.

A fence is `max(last + 1, time)`. A replica that is promoted may not know the last fence, but its
clock is beyond the time at which that was given. Versions begin above the time for the same reason
once the server has another run id: what was lost may have had any of the next numbers.
"""

from __future__ import annotations

import re
from hashlib import sha1
from typing import NamedTuple

from floodline.stores._redis.lease_scripts import (
    ACQUIRE,
    LEASES,
    RELEASE,
    RENEW,
    SCHEMA,
    WANTED,
)
from floodline.stores._redis.row_scripts import (
    APPEND,
    APPEND_ROWS,
    COUNT_ROWS,
    DELETE_ROWS,
    GET_ROWS,
    LIST_LOGS,
    LOGS,
    ROWS,
)
from floodline.stores._refusals import KEPT_BYTES, KEPT_ROWS

_BEGINNING = """
local P, meta = KEYS[1], KEYS[1] .. 'meta'
local SLACK = 60000000
local function time()
  local t = redis.call('TIME')
  return t[1] * 1000000 + t[2]
end
local now = tonumber(ARGV[1]) or time()
local stamp = tonumber(ARGV[2]) or now
"""

_HEAD = (
    """
local function text(number) return string.format('%.0f', number) end
local function key(name, id) return #name .. ':' .. name .. id end
local function figure(field) return tonumber(redis.call('HGET', meta, field)) or 0 end
"""
    + LEASES
    + """
local function read(keys)  -- of leases and rows in turn
  local found = redis.call('MGET', unpack(keys))
  for j = 2, #keys, 2 do
    if not found[j] then redis.call('GET', keys[j]) end  -- fails if there is something else
  end
  return found
end
local function used(name, id)
  redis.call('ZADD', P .. 'used:' .. name, 'GT', text(stamp), id)
end
local function note_id(name, id)
  redis.call('ZADD', P .. 'ids:' .. name, 0, id)
  redis.call('ZADD', P .. 'names', 0, name)
end
local function count(rows, bytes)
  if rows ~= 0 then redis.call('HINCRBY', meta, 'rows', rows) end
  if bytes ~= 0 then redis.call('HINCRBY', meta, 'bytes', bytes) end
end
"""
    + LOGS
    + """
local function forget(name, id)
  local k = key(name, id)
  forget_logs(k)
  local row = redis.call('GET', P .. 'v' .. k)
  if not row then return 0 end
  local version, size = string.match(row, '^(%d+) (%d+)')
  if tonumber(version) > figure('floor') then redis.call('HSET', meta, 'floor', version) end
  count(-1, -size)
  redis.call('DEL', P .. 'v' .. k, P .. 'e' .. k)
  redis.call('ZREM', P .. 'ids:' .. name, id)
  if redis.call('EXISTS', P .. 'ids:' .. name) == 0 then redis.call('ZREM', P .. 'names', name) end
  redis.call('ZREM', P .. 'used:' .. name, id)
  return 1
end
"""
)

_KEEP = f"""
local function keep(kind, name, id, at, why, envelope, digest)
  if at == '' then at = text(now) end
  local n = redis.call('HINCRBY', meta, kind .. '_n', 1)
  redis.call('HSET', P .. kind .. ':' .. n, 'n', name, 'i', id, 't', at, 'y', why, 'd', digest,
    'e', envelope)
  redis.call('RPUSH', P .. kind, n)
  local bytes = redis.call('HINCRBY', meta, kind .. '_bytes', #envelope)
  while redis.call('LLEN', P .. kind) > {KEPT_ROWS} or bytes > {KEPT_BYTES} do
    local old = P .. kind .. ':' .. redis.call('LPOP', P .. kind)
    redis.call('SREM', P .. kind .. ':seen', redis.call('HGET', old, 'd'))
    bytes = redis.call('HINCRBY', meta, kind .. '_bytes', -redis.call('HSTRLEN', old, 'e'))
    redis.call('DEL', old)
    redis.call('HINCRBY', meta, kind .. '_dropped', 1)
  end
end
"""

_FUNCTIONS = [
    piece
    for piece in re.split(r"(?m)^(?=local function )", _HEAD + _KEEP + APPEND)
    if piece.startswith("local function ")
]

_OPEN = f"""
local found = redis.call('HMGET', meta, 'schema', 'run', 'born')
if not found[1] then
  redis.call('HSET', meta, 'schema', {SCHEMA}, 'run', ARGV[3], 'born', ARGV[4])
  return {{'{SCHEMA}', ARGV[4]}}
end
if tonumber(found[1]) ~= {SCHEMA} then return {{found[1], found[3]}} end
if found[2] ~= ARGV[3] then
  redis.call('HSET', meta, 'run', ARGV[3], 'base', text(math.max(figure('base'), time())))
end
for _, k in ipairs(redis.call('ZRANGEBYSCORE', P .. 'leases', '-inf', text(now - 3600000000),
    'LIMIT', 0, 1000)) do
  local lease = lease_at(k)
  if lease and lasts(lease, now) then
    redis.call('ZADD', P .. 'leases', text(now), k)
  elseif lease then
    unlease(k, lease)
  else
    redis.call('ZREM', P .. 'leases', k)
  end
end
return {{found[1], found[3]}}
"""

_SAVE = """
local at, noted, lost, stale, rows_why, name = unpack(ARGV, 3, 8)
local of, last = key(name, ''), #ARGV
local i, n, asked, starts = 9, 0, {}, {}
local appends_of, appends = {}  -- rows
while i <= last do
  local k = of .. ARGV[i]
  asked[n + 1], asked[n + 2] = P .. 'l' .. k, P .. 'v' .. k
  n = n + 2
  starts[n] = i
  i = i + 6
  appends_of[n], i = read_appends(i)  -- rows
end
if noted == '1' then redis.call('HINCRBY', meta, 'writes', 1) end
if at == '' then at = text(now) end
local found, base = read(asked), figure('base')
local out, blobs, free, places, written, uses = {}, {''}, {}, {}, {}, {}
local latest, rows, bytes, made = text(stamp), 0, 0, {}
for j = 1, n, 2 do
  i = starts[j + 1]
  local id, fence, version = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local write, release, envelope = ARGV[i + 3], ARGV[i + 4], ARGV[i + 5]
  appends = appends_of[j + 1]  -- rows
  local k, lease, row = of .. id, found[j], found[j + 1]
  local ours = lease and string.sub(lease, 1, #fence + 1) == fence .. ' '
  local stored, size, from, done = '0', 0, 1
  if row then
    stored, size, from = string.match(row, '^(%d+) (%d+)\\n()')
    local place = string.find(row, ' ' .. write .. '\\n', from, true)
    done = place and string.match(string.sub(row, from, place - 1), '%d+$')
  end
  local good = ours and not done and stored == version
  local refused
  refused = good and refused_rows(k, appends)  -- rows
  if refused then
    out[#out + 1] = '2 0 0'
    blobs[#blobs + 1] = refused
  else
    if ours and release == '1' then
      free[#free + 1] = asked[j]
      places[#places + 1] = k
      if string.sub(lease, #fence + 2, #fence + 2) == '1' then tell(k, lease_of(lease)) end
    end
    if done then
      out[#out + 1] = '1 ' .. done .. ' 0'
    elseif not good then
      local why = ours and string.format(stale, version, row and stored or 'none') or lost
      keep_rows(name, id, at, rows_why .. why, appends)  -- rows
      keep('conflicts', name, id, at, why, envelope, '')
      out[#out + 1] = '3 ' .. (ours and 1 or 0) .. ' ' .. stored
    else
      local new = text(math.max(base, row and tonumber(stored) or figure('floor')) + 1)
      local four = from - 1  -- a pattern would look at each character by itself
      for _ = 1, 4 do four = four and string.find(row or '', '\\n', four + 1, true) end
      local earlier = row and string.sub(row, from, four or -1) or ''
      local m = #written
      written[m + 1] = asked[j + 1]
      written[m + 2] = new .. ' ' .. #envelope .. '\\n' .. new .. ' ' .. write .. '\\n' .. earlier
      written[m + 3] = P .. 'e' .. k
      written[m + 4] = envelope
      if not row then made[#made + 1] = id end
      uses[#uses + 1] = latest
      uses[#uses + 1] = id
      write_rows(k, appends, at)  -- rows
      bytes = bytes + #envelope - size
      out[#out + 1] = '1 ' .. new .. ' 0'
    end
  end
end
if written[1] then
  redis.call('MSET', unpack(written))
  redis.call('ZADD', P .. 'used:' .. name, 'GT', unpack(uses))
  for _, id in ipairs(made) do note_id(name, id) end
  count(#made, bytes)
end
if free[1] then
  redis.call('DEL', unpack(free))
  redis.call('ZREM', P .. 'leases', unpack(places))
end
blobs[1] = table.concat(out, ' ')
return blobs
"""

_PLAIN_SAVE = re.sub(r"(?m)^.*-- rows\n", "", _SAVE)  # nearly all have none

_WRITTEN = """
local row = redis.call('GET', P .. 'v' .. key(ARGV[3], ARGV[4]))
local version, write = string.match(row or '', '\\n(%d+) ([^\\n]*)')
if write == ARGV[5] then return version end
return false
"""

_LOAD = """
local k = key(ARGV[3], ARGV[4])
local row, envelope = redis.call('GET', P .. 'v' .. k), redis.call('GET', P .. 'e' .. k)
return {row and envelope and string.match(row, '^%d+'), envelope}
"""

_DELETE = """
local name, id, fence = unpack(ARGV, 3)
local k = key(name, id)
local lease = lease_at(k)
if not lease or lease.fence ~= fence then return -1 end
unlease(k, lease)
return forget(name, id)
"""

_QUARANTINE = """
local name, id, at, why, envelope = unpack(ARGV, 3, 7)
local digest = redis.sha1hex(#name .. ':' .. name .. #id .. ':' .. id .. envelope)
if redis.call('SADD', P .. 'quarantine:seen', digest) == 1 then
  keep('quarantine', name, id, at, why, envelope, digest)
end
"""

_DATE = """
return {text(time()), redis.call('HGET', meta, 'noted')}
"""

_PURGE = """
local name, unused, limit, judged, noted = unpack(ARGV, 3)
unused, limit = tonumber(unused), tonumber(limit)
if noted ~= '' then redis.call('HSET', meta, 'noted', noted) end
local index = P .. 'used:' .. name
for _, id in ipairs(redis.call('ZRANGEBYSCORE', index, '(' .. text(stamp), '+inf',
    'LIMIT', 0, limit)) do
  redis.call('ZADD', index, text(stamp), id)
end
local gone, from = {}, 0
while #gone < limit do
  local page = redis.call('ZRANGEBYSCORE', index, '-inf', text(judged - unused),
    'LIMIT', from, limit)
  if #page == 0 then break end
  for _, id in ipairs(page) do
    local lease = lease_at(key(name, id))
    if #gone < limit and not (lease and lasts(lease, now - unused)) then
      gone[#gone + 1] = id
    end
  end
  from = from + #page
end
for _, id in ipairs(gone) do
  local k = key(name, id)  -- whose lease nobody waits for: it was free
  redis.call('DEL', P .. 'l' .. k)
  redis.call('ZREM', P .. 'leases', k)
  forget(name, id)
end
return gone
"""

_IDS = """
return redis.call('ZRANGEBYLEX', P .. 'ids:' .. ARGV[3], '(' .. ARGV[4], '+', 'LIMIT', 0, ARGV[5])
"""

_NAMES = """
return redis.call('ZRANGEBYLEX', P .. 'names', '(' .. ARGV[3], '+', 'LIMIT', 0, ARGV[4])
"""

_COUNT = """
return redis.call('ZCARD', P .. 'ids:' .. ARGV[3])
"""

_STATS = """
return {text(figure('rows')), text(figure('bytes')), redis.call('ZCARD', P .. 'leases'),
  redis.call('LLEN', P .. 'conflicts'), redis.call('LLEN', P .. 'quarantine'),
  text(figure('conflicts_dropped')), text(figure('quarantine_dropped')),
  text(figure('log_rows')), text(figure('log_bytes'))}
"""

_KEPT = """
local kind, name, limit = unpack(ARGV, 3)
local numbers, found = redis.call('LRANGE', P .. kind, 0, -1), {}
for i = #numbers, 1, -1 do
  if #found >= tonumber(limit) then break end
  local one = P .. kind .. ':' .. numbers[i]
  if name == '*' or redis.call('HGET', one, 'n') == string.sub(name, 2) then
    found[#found + 1] = redis.call('HMGET', one, 'n', 'i', 't', 'y', 'e')
  end
end
return found
"""


class Script(NamedTuple):
    """The text of a script and the name under which a server that has it runs it."""

    text: bytes
    digest: str


def _made(body: str, flags: str | None) -> Script:
    text = body
    for function in reversed(_FUNCTIONS):  # each uses earlier ones only
        if _name_of(function) + "(" in text:
            text = function + text
    line = "" if flags is None else f"#!lua {flags}".rstrip() + "\n"
    whole = f"{line}{_BEGINNING}{text}".encode()
    return Script(whole, sha1(whole, usedforsecurity=False).hexdigest())


def _name_of(function: str) -> str:
    return function.removeprefix("local function ").partition("(")[0]


_READ, _FREES, _GROWS = "flags=no-writes", "flags=allow-oom", ""
_BODIES = {
    "open": (_OPEN, _FREES),
    "acquire": (ACQUIRE, _GROWS),
    "renew": (RENEW, _FREES),
    "release": (RELEASE, _FREES),
    "wanted": (WANTED, _FREES),
    "save": (_PLAIN_SAVE, _GROWS),
    "save_rows": (_SAVE, _GROWS),
    "written": (_WRITTEN, _READ),
    # a write of its own, so that what WAIT waits for includes all that the answer rests on
    "confirm": ("redis.call('HINCRBY', meta, 'writes', 1)\n" + _WRITTEN, _FREES),
    "load": (_LOAD, _READ),
    "delete": (_DELETE, _FREES),
    "quarantine": (_QUARANTINE, _GROWS),
    "date": (_DATE, _READ),
    "purge": (_PURGE, _FREES),
    "ids": (_IDS, _READ),
    "names": (_NAMES, _READ),
    "count": (_COUNT, _READ),
    "stats": (_STATS, _READ),
    "kept": (_KEPT, _READ),
    "append_rows": (APPEND_ROWS, _GROWS),
    "get_rows": (GET_ROWS, _READ),
    "rows": (ROWS, _READ),
    "logs": (LIST_LOGS, _READ),
    "count_rows": (COUNT_ROWS, _READ),
    "delete_rows": (DELETE_ROWS, _FREES),
}


def scripts_for(major: int) -> dict[str, Script]:
    """Return the scripts as a server of this version takes them.

    From 7 on a script says what it does: a server without memory runs what frees some, and
    refuses the rest before it begins, where an older one would refuse it in the middle.
    """
    return {
        what: _made(body, flags if major >= 7 else None) for what, (body, flags) in _BODIES.items()
    }
