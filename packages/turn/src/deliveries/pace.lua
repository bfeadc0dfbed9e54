-- Admits one message when both its conversation and its binding may send (GCRA), and the binding is not paused.
-- KEYS  1 the conversation's pace  2 the binding's pace  3 until when the binding is paused (take.lua)  4 prefix with
--       the hash tag
-- ARGV  1 as JSON: a list of two, of the conversation and of the binding: intervalMs between messages; burst
-- Returns ms to wait; 0 when it may go, and is counted then
-- Atomic because several workers send for one binding, and a message counts for both or for none.
#include "../lua/clock.lua"
local now, paces = now_ms(KEYS[4]), cjson.decode(ARGV[1])
local wait = math.max(tonumber(redis.call('GET', KEYS[3]) or '0') - now, 0)
local arrivals = {}
for index, given in ipairs(paces) do
  local arrival = math.max(tonumber(redis.call('GET', KEYS[index]) or '0'), now)
  arrivals[index] = arrival + given.intervalMs
  wait = math.max(wait, arrival - (given.burst - 1) * given.intervalMs - now)
end
if wait > 0 then return math.ceil(wait) end
for index = 1, 2 do
  redis.call('SET', KEYS[index], string.format('%.3f', arrivals[index]), 'PX', math.ceil(arrivals[index] - now) + 3600000)
end
return 0
