-- Records a worker's heartbeat; a tenant's share grows with the workers.
-- KEYS  1 prefix with the hash tag
-- ARGV  1 as JSON: workerId; share: of one worker; goneMs: silence after which a worker counts as gone; facts: what it
--       is doing, as JSON; leaving
-- Returns the number of workers.
-- Atomic because several workers count one another.
#include "clock.lua"
local given = cjson.decode(ARGV[1])
local workers, about = KEYS[1] .. ':workers', KEYS[1] .. ':worker-facts'
note_time(KEYS[1])
local now = wall_ms()
if given.leaving then
  redis.call('ZREM', workers, given.workerId)
  redis.call('HDEL', about, given.workerId)
else
  redis.call('ZADD', workers, now, given.workerId)
  redis.call('HSET', about, given.workerId, given.facts)
end
-- Heartbeats from the future were recorded before Redis' clock was set back: a living worker beats again in a moment.
for _, range in ipairs({ { '-inf', now - given.goneMs }, { now + given.goneMs, '+inf' } }) do
  for _, gone in ipairs(redis.call('ZRANGEBYSCORE', workers, range[1], range[2])) do
    redis.call('ZREM', workers, gone)
    redis.call('HDEL', about, gone)
    -- Asked for while its turns are started again (lease.lua).
    redis.call('EXPIRE', KEYS[1] .. ':unproven:' .. gone, 3600)
  end
end
local count = redis.call('ZCARD', workers)
redis.call('SET', KEYS[1] .. ':share', math.max(1, count) * given.share)
return count
