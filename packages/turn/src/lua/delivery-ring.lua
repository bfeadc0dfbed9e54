-- Notes when the next bell of a conversation's outbox rings, so that it is heard of when it gets lost.
-- KEYS  1 conversations by the time of their next bell  2 those of the tenant  3 prefix with the hash tag
-- ARGV  1 account/lane  2 time until the bell, ms  3 how much later another of the tenant's may be due to count, ms
-- Returns how many of the tenant's are due by then, itself included; 0 when a bell comes before it that is still ahead
-- Atomic because several may want to ring: one bell is enough.
#include "clock.lua"
local now = now_ms(KEYS[3])
local at = now + tonumber(ARGV[2])
local known = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or '0')
if known > now and known <= at then return 0 end
redis.call('ZADD', KEYS[1], at, ARGV[1])
redis.call('ZADD', KEYS[2], at, ARGV[1])
return redis.call('ZCOUNT', KEYS[2], '-inf', at + tonumber(ARGV[3]))
