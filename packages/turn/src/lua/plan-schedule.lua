-- Says when a claimed schedule is to be looked at again.
-- KEYS  1 the sorted set of schedules  2 those that are claimed
-- ARGV  1 member  2 claimed until, ms  3 when, ms; empty: never
-- Returns 1, or 0 when it is no longer claimed: it was changed meanwhile, and is to be looked at before that.
-- Atomic because a change between the look and the write would be overwritten, and noticed only at the old time.
local score = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not score or tonumber(score) ~= tonumber(ARGV[2]) then
  return 0
end
redis.call('ZREM', KEYS[2], ARGV[1])
if ARGV[3] == '' then
  redis.call('ZREM', KEYS[1], ARGV[1])
else
  redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1])
end
return 1
