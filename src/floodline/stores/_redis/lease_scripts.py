"""The scripts of leases: giving, keeping and ending them, and telling who waits.

A lease is one string `l…`, its owner last. A heartbeat is a hash `b…`; a lease whose `beat` is not
0 lasts as long as its owner's heartbeat of that number. `waited` says that somebody waits for the
lease, `hears` that its owner hears who wants it; both are told on the channel `leases`.
"""

from __future__ import annotations

SCHEMA = 2

LEASES = """
local function held(since, till, at)
  return tonumber(since) <= now + SLACK and tonumber(till) > at
end
local function say(what, about)  -- a user without a right to the channel works all the same
  redis.pcall('PUBLISH', P .. 'leases', what .. about)
end
local function packed_lease(fence, waited, hears, since, till, beat, owner)
  return table.concat({fence, waited .. hears, since, till, beat, owner}, ' ')
end
local function lease_of(packed)
  if not packed then return nil end
  local fence, waited, hears, since, till, beat, owner =
    string.match(packed, '^(%d+) (%d)(%d) (%S+) (%S+) (%d+) (.*)$')
  return {fence = fence, waited = waited, hears = hears, since = since, till = till, beat = beat,
    owner = owner}
end
local function lease_at(k) return lease_of(redis.call('GET', P .. 'l' .. k)) end
local function fence_at(k) return string.match(redis.call('GET', P .. 'l' .. k) or '', '^%d+') end
local function lasts(lease, at)
  if held(lease.since, lease.till, at) then return lease.till end
  if lease.beat == '0' then return nil end
  local beat = redis.call('HMGET', P .. 'b' .. lease.owner, 's', 'u', 'n')
  return beat[3] == lease.beat and held(beat[1], beat[2], at) and beat[2]
end
local function tell(k, lease)
  if lease.waited == '1' then
    redis.call('SREM', P .. 'wanted:' .. lease.owner, k)
    say('f', k)
  end
end
local function unlease(k, lease)
  redis.call('DEL', P .. 'l' .. k)
  redis.call('ZREM', P .. 'leases', k)
  tell(k, lease)
end
"""

ACQUIRE = f"""
local of, lease = key(ARGV[3], ''), ARGV[4]
local n, asked = 0, {{}}
for i = 5, #ARGV, 5 do
  local k = of .. ARGV[i]
  asked[n + 1], asked[n + 2] = P .. 'l' .. k, P .. 'v' .. k
  n = n + 2
end
local found = read(asked)
local till, fence = text(now + lease)
local tail = ' ' .. text(now) .. ' ' .. till .. ' 0 '
local out, blobs, given, places = {{}}, {{''}}, {{}}, {{}}
for j = 1, n, 2 do
  local i = (j - 1) / 2 * 5 + 5
  local id, owner, known, dead, hears = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4]
  local k, waited, present, alive = of .. id, '0', lease_of(found[j])
  if present then
    alive, waited = lasts(present, now), present.waited
  end
  if alive and present.owner ~= owner and present.owner ~= dead then
    local theirs = P .. 'wanted:' .. present.owner
    redis.call('SET', asked[j], packed_lease(present.fence, '1', present.hears, present.since,
      present.till, present.beat, present.owner))
    if redis.call('SADD', theirs, k) == 1 and present.hears == '1' then say('w', present.owner) end
    redis.call('EXPIRE', theirs, 3600)
    out[#out + 1] = '0 ' .. text(alive - now) .. ' 0'
    blobs[#blobs + 1] = present.owner
  else
    if fence then
      fence = fence + 1
    else
      local noted, clock = redis.call('HMGET', meta, 'schema', 'fence'), now
      if ARGV[1] ~= '' then clock = time() end
      if not noted[1] then redis.call('HSET', meta, 'schema', {SCHEMA}, 'base', text(clock)) end
      fence = math.max((tonumber(noted[2]) or 0) + 1, clock)
      redis.call('HSET', meta, 'fence', text(fence + n / 2 - 1))  -- of all, before any is given
    end
    local mine, row = text(fence), found[j + 1]
    if present then redis.call('SREM', P .. 'wanted:' .. present.owner, k) end
    given[#given + 1] = asked[j]
    given[#given + 1] = mine .. ' ' .. waited .. hears .. tail .. owner  -- see `packed_lease`
    places[#places + 1] = till
    places[#places + 1] = k
    local version, envelope = row and string.match(row, '^%d+')
    if version and version ~= known then
      envelope = redis.call('GET', P .. 'e' .. k)
      if not envelope then  -- evicted or deleted by somebody: the rest goes the same way
        forget(ARGV[3], id)
        version = nil
      end
    end
    if envelope then
      out[#out + 1] = '2 ' .. mine .. ' ' .. version
      blobs[#blobs + 1] = envelope
    else
      out[#out + 1] = '1 ' .. mine .. ' ' .. (version or '0')
    end
  end
end
if given[1] then
  redis.call('MSET', unpack(given))
  redis.call('ZADD', P .. 'leases', unpack(places))
end
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
  local present = lease_at(k)
  local ours = present and present.owner == owner and present.fence == ARGV[i + 1]
  if i >= 9 + 2 * new then
    if ours then unlease(k, present) end
  elseif ours then
    redis.call('SET', P .. 'l' .. k, packed_lease(present.fence, present.waited, present.hears,
      text(now), till, number, owner))
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
  local lease = lease_at(k)
  if string.sub(k, 1, #of) == of and lease and lease.owner == owner then
    found[#found + 1] = string.sub(k, #of + 1)
  end
end
redis.call('DEL', asked)
return found
"""

RELEASE = """
local name, id, fence = unpack(ARGV, 3)
local k = key(name, id)
local lease = lease_at(k)
if not lease or lease.fence ~= fence then return 0 end
unlease(k, lease)
if redis.call('EXISTS', P .. 'v' .. k) == 1 then used(name, id) end
return 1
"""
