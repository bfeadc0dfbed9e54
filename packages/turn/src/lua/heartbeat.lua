-- Records a worker's heartbeat; a tenant's share grows with the workers.
-- KEYS  1 prefix with the hash tag
-- ARGV  1 worker id  2 share of one worker  3 silence after which a worker counts as gone, ms  4 what it is doing,
--       JSON  5 '1' when it leaves
-- Returns the number of workers.
-- Atomic because several workers count one another.
#include "clock.lua"
local workers, about = KEYS[1] .. ':workers', KEYS[1] .. ':worker-facts'
note_time(KEYS[1])
local now = wall_ms()
if ARGV[5] == '1' then
  redis.call('ZREM', workers, ARGV[1])
  redis.call('HDEL', about, ARGV[1])
else
  redis.call('ZADD', workers, now, ARGV[1])
  redis.call('HSET', about, ARGV[1], ARGV[4])
end
-- Heartbeats from the future were recorded before Redis' clock was set back: a living worker beats again in a moment.
for _, range in ipairs({ { '-inf', now - tonumber(ARGV[3]) }, { now + tonumber(ARGV[3]), '+inf' } }) do
  for _, gone in ipairs(redis.call('ZRANGEBYSCORE', workers, range[1], range[2])) do
    redis.call('ZREM', workers, gone)
    redis.call('HDEL', about, gone)
  end
end
local count = redis.call('ZCARD', workers)
redis.call('SET', KEYS[1] .. ':share', math.max(1, count) * tonumber(ARGV[2]))
return count
