-- Renews the leases of one worker, and finds cancels that pub/sub lost. Notes the time.
-- KEYS  1 prefix with the hash tag
-- ARGV  1 as JSON: leaseMs; leases: of member (account/session), epoch, turnId
-- Returns {members whose lease is lost, turn ids that are cancelled, 1 when a lane is due (sweep.lua) else 0}
-- Atomic because a lease must not be prolonged after it has passed to another.
#include "clock.lua"
local prefix, given = KEYS[1], cjson.decode(ARGV[1])
local now = note_time(prefix)
local until_ms = now + given.leaseMs
local lost, cancelled = {}, {}
for _, one in ipairs(given.leases) do
  local held = prefix .. ':lease:' .. one.member
  local lease = redis.call('HMGET', held, 'epoch', 'turn', 'until')
  if lease[1] == one.epoch and lease[2] == one.turnId and lease[3] then
    redis.call('HSET', held, 'until', until_ms)
    redis.call('ZADD', prefix .. ':due', until_ms, one.member)
    if redis.call('HGET', prefix .. ':turn:' .. one.turnId, 'cancelled') == '1' then cancelled[#cancelled + 1] = one.turnId end
  else
    lost[#lost + 1] = one.member
  end
end
return { lost, cancelled, #redis.call('ZRANGEBYSCORE', prefix .. ':due', '-inf', now, 'LIMIT', 0, 1) }
