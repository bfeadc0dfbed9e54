-- Takes, keeps or gives back the right to send in one conversation.
-- KEYS  1 the lease  2 conversations by the time of their next bell  3 those of the tenant  4 prefix with the hash tag
-- ARGV  1 'take', 'keep', 'release' or 'empty' (nothing is left to be sent)  2 token of the holder  3 account/lane  4 lease, ms
-- Returns 1 when the lease is, or was, the holder's; 0 when it is another's
-- Atomic because a lease that has passed on must stay as it is. It ends by service time; Redis' own expiry only clears away.
#include "clock.lua"
local now = now_ms(KEYS[4])
local verb, token, lane, lease = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local known_until, holder = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+) (.+)$')
if not known_until or tonumber(known_until) <= now then holder = nil end

local function hold()
  redis.call('SET', KEYS[1], string.format('%.0f %s', now + lease, token), 'PX', lease + 3600000)
end

local function next_bell(at)
  redis.call('ZADD', KEYS[2], at, lane)
  redis.call('ZADD', KEYS[3], at, lane)
end

if verb == 'take' then
  if holder then return 0 end
  hold()
  next_bell(now + lease)
  return 1
end
if holder ~= token then return 0 end
if verb == 'keep' then
  hold()
  next_bell(now + lease)
  return 1
end
redis.call('DEL', KEYS[1])
if verb == 'empty' then
  redis.call('ZREM', KEYS[2], lane)
  redis.call('ZREM', KEYS[3], lane)
else
  next_bell(now)
end
return 1
