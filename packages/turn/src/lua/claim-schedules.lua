-- Claims the schedules that are due.
-- KEYS  1 the sorted set of schedules
-- ARGV  1 now, ms  2 how many at most  3 claimed until, ms
-- Returns the claimed members
-- Atomic because every replica asks at once. A claim is a later time: whoever dies with it leaves it to the others.
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, tonumber(ARGV[2]))
for _, member in ipairs(due) do
  redis.call('ZADD', KEYS[1], ARGV[3], member)
end
return due
