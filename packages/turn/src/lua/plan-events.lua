-- Notes when events are to be tried.
-- KEYS  1 events of the endpoint by the service time of their next try  2 prefix with the hash tag
-- ARGV  1 JSON: events, a list of {id, delayMs}; onlyNew, when those that are planned already stay where they are
-- Returns how many are new
-- Atomic because the times are service times.
#include "clock.lua"
local now, given = now_ms(KEYS[2]), cjson.decode(ARGV[1])
local added = 0
for _, event in ipairs(given.events) do
  local at = string.format('%.0f', now + event.delayMs)
  if given.onlyNew then
    added = added + redis.call('ZADD', KEYS[1], 'NX', at, event.id)
  else
    added = added + redis.call('ZADD', KEYS[1], at, event.id)
  end
end
return added
