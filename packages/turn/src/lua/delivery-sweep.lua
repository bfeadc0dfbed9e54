-- Finds conversations whose bell nobody answered, or whose holder is gone.
-- KEYS  1 conversations by the time of their next bell  2 prefix with the hash tag
-- ARGV  1 at most so many  2 how late a bell may be, ms  3 wait before they are looked at again, ms
-- Returns a list of account/lane
-- Atomic because several replicas sweep: each rings for others.
#include "clock.lua"
local now = now_ms(KEYS[2])
local late = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now - tonumber(ARGV[2]), 'LIMIT', 0, tonumber(ARGV[1]))
for _, lane in ipairs(late) do redis.call('ZADD', KEYS[1], now + tonumber(ARGV[3]), lane) end
return late
