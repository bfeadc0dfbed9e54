-- Seals the write-ahead log of a dead process: from now on no acceptance that is in it alone is acknowledged.
-- KEYS  1 prefix with the hash tag
-- ARGV  1 as JSON: log: its id; goneMs: without a sign of its process, until it is dead
-- Returns 1 when it is sealed, 0 when its process is alive
-- Atomic because its process may renew it between the look and the removal.
#include "../lua/clock.lua"
local prefix, given = KEYS[1], cjson.decode(ARGV[1])
local logs = prefix .. ':logs'
local heard = redis.call('ZSCORE', logs, given.log)
if heard and now_ms(prefix) - tonumber(heard) <= given.goneMs then return 0 end
redis.call('ZREM', logs, given.log)
return 1
