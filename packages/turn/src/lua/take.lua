-- Claims a task for a while, so that one of many processes does it.
-- KEYS  1 prefix with the hash tag  2 the task
-- ARGV  1 as JSON: forMs: for how long; keeps: the caller has it and keeps it; holds: until when the caller had it, who
--       keeps it unless another has taken it since
-- Returns until when it is the caller's, which no other claim of it says; 0 when it is another's
-- Atomic because another may take it between the look and the write. It ends by service time; Redis' own expiry only
-- clears away.
#include "clock.lua"
local now, given = now_ms(KEYS[1]), cjson.decode(ARGV[1])
local length = math.ceil(given.forMs)
local taken_until = tonumber(redis.call('GET', KEYS[2]) or '0')
if given.holds then
  if taken_until ~= given.holds then return 0 end
elseif not given.keeps and taken_until > now then
  return 0
end
redis.call('SET', KEYS[2], now + length, 'PX', length + 3600000)
return now + length
