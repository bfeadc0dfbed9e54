-- Claims a task for a while, so that one of many processes does it.
-- KEYS  1 prefix with the hash tag  2 the task
-- ARGV  1 as JSON: forMs: for how long, 0 to give it back; keeps: the caller has it and keeps it; holds: until when the
--       caller had it, who keeps it unless another has taken it since; notesTime: nothing runs that may note the time
-- Returns until when it is the caller's, which no other claim of it says; 0 when it is another's
-- Atomic because another may take it between the look and the write. It ends by service time; Redis' own expiry only
-- clears away.
#include "clock.lua"
local given = cjson.decode(ARGV[1])
if given.notesTime then note_time(KEYS[1]) end
local now = now_ms(KEYS[1])
local length = math.ceil(given.forMs)
local taken_until = tonumber(redis.call('GET', KEYS[2]) or '0')
if given.holds then
  if taken_until ~= given.holds then return 0 end
elseif not given.keeps and taken_until > now then
  return 0
end
if length == 0 then
  redis.call('DEL', KEYS[2])
else
  redis.call('SET', KEYS[2], now + length, 'PX', length + 3600000)
end
return now + length
