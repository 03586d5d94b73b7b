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
local name, id, owner, lease, known, dead, hears = unpack(ARGV, 3)
local k = key(name, id)
local present, alive = leased(k, now)
if alive and present[1] ~= owner and present[1] ~= dead then
  local asked = P .. 'wanted:' .. present[1]
  redis.call('HSET', P .. 'l' .. k, 'w', '1')
  if redis.call('SADD', asked, k) == 1 and present[5] then say('w', present[1]) end
  redis.call('EXPIRE', asked, 3600)
  return {{0, present[1], text(alive - now)}}
end
local noted, clock = redis.call('HMGET', meta, 'schema', 'fence'), now
if ARGV[1] ~= '' then clock = time() end
if not noted[1] then
  redis.call('HSET', meta, 'schema', {SCHEMA}, 'base', text(clock))
end
local fence = text(math.max((tonumber(noted[2]) or 0) + 1, clock))
redis.call('HSET', meta, 'fence', fence)
local till = text(now + lease)
if present[1] then
  redis.call('HDEL', P .. 'l' .. k, 'b', 'h')
  redis.call('SREM', P .. 'wanted:' .. present[1], k)
end
redis.call('HSET', P .. 'l' .. k, 'o', owner, 'f', fence, 's', text(now), 'u', till)
if hears == '1' then redis.call('HSET', P .. 'l' .. k, 'h', '1') end
redis.call('ZADD', P .. 'leases', till, k)
local version = redis.call('HGET', P .. 'r' .. k, 'v')
if not version then return {{1, fence, '0'}} end
if version == known then return {{1, fence, version}} end
return {{1, fence, version, redis.call('HGET', P .. 'r' .. k, 'e')}}
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
