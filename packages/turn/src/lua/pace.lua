-- Admits one message when both its conversation and its binding may send (GCRA), and the binding is not paused.
-- KEYS  1 the conversation's pace  2 the binding's pace  3 until when the binding is paused (take.lua)  4 prefix with
--       the hash tag
-- ARGV  1 between messages of the conversation, ms  2 its burst  3 between messages of the binding, ms  4 its burst
-- Returns ms to wait; 0 when it may go, and is counted then
-- Atomic because several workers send for one binding, and a message counts for both or for none.
#include "clock.lua"
local now = now_ms(KEYS[4])
local wait = math.max(tonumber(redis.call('GET', KEYS[3]) or '0') - now, 0)
local arrivals = {}
for index = 1, 2 do
  local interval, burst = tonumber(ARGV[2 * index - 1]), tonumber(ARGV[2 * index])
  local arrival = math.max(tonumber(redis.call('GET', KEYS[index]) or '0'), now)
  arrivals[index] = arrival + interval
  wait = math.max(wait, arrival - (burst - 1) * interval - now)
end
if wait > 0 then return math.ceil(wait) end
for index = 1, 2 do
  redis.call('SET', KEYS[index], string.format('%.3f', arrivals[index]), 'PX', math.ceil(arrivals[index] - now) + 3600000)
end
return 0
