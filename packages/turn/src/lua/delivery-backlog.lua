-- Counts the conversations of a tenant in which something is to be sent now.
-- KEYS  1 those of the tenant by the time of their next bell  2 prefix with the hash tag
-- ARGV  1 how much later one may be due to count, ms
-- Returns how many
-- Atomic because the times are service times.
#include "clock.lua"
return redis.call('ZCOUNT', KEYS[1], '-inf', now_ms(KEYS[2]) + tonumber(ARGV[1]))
