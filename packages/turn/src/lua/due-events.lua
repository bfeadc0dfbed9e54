-- Finds the events of an endpoint that are due.
-- KEYS  1 events of the endpoint by the service time of their next try  2 prefix with the hash tag
-- ARGV  1 JSON: limit
-- Returns {ids that are due, service time of the first try or '', ms until then}
-- Atomic because the times are service times.
#include "clock.lua"
local now, given = now_ms(KEYS[2]), cjson.decode(ARGV[1])
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, given.limit)
local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
return { due, first[2] or '', first[2] and math.max(math.ceil(tonumber(first[2]) - now), 0) or 0 }
