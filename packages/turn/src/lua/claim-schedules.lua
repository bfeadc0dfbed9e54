-- Claims the schedules that are due, and those whose claimant is gone.
-- KEYS  1 the sorted set of schedules  2 those that are claimed, by the service time at which the claim ends  3 prefix with the hash tag
-- ARGV  1 now, ms  2 how many at most  3 claimed until, ms  4 for how long, ms
-- Returns the claimed members
-- Atomic because every replica asks at once. A claim is a later time of the claimant's clock, which tells it from others. When it ends does not follow that
-- clock: a claimant that dies leaves its schedules to the others after the same time, however far its clock was ahead.
#include "clock.lua"
local now, most = now_ms(KEYS[3]), tonumber(ARGV[2])
local claimed = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, most)
for _, member in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, most - #claimed)) do claimed[#claimed + 1] = member end
for _, member in ipairs(claimed) do
  redis.call('ZADD', KEYS[1], ARGV[3], member)
  redis.call('ZADD', KEYS[2], now + tonumber(ARGV[4]), member)
end
return claimed
