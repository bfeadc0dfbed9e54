-- Returns for how long the given names of a conversation have been known, and deletes its other names.
-- KEYS  1 the names of the conversation, by the service time at which each was first seen  2 prefix with the hash tag
-- ARGV  1 JSON: names; keepMs, after which a conversation that is not asked about is cleared away
-- Returns the ages in ms, in the order of the names; 0 for one that is new
-- Atomic because several workers may ask at once, and the first time counts.
#include "../lua/clock.lua"
local now, given = now_ms(KEYS[2]), cjson.decode(ARGV[1])
local ages, seen = {}, {}
for index, name in ipairs(given.names) do
  local at = tonumber(redis.call('HGET', KEYS[1], name) or now)
  ages[index], seen[name] = math.max(now - at, 0), at
end
redis.call('DEL', KEYS[1])
for name, at in pairs(seen) do redis.call('HSET', KEYS[1], name, string.format('%.0f', at)) end
redis.call('PEXPIRE', KEYS[1], given.keepMs)
return ages
