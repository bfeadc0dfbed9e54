-- Says that the process of a write-ahead log is alive. Only a log that is known here has its acceptances acknowledged.
-- KEYS  1 prefix with the hash tag
-- ARGV  1 as JSON: log: its id; isNew: it was never known before
-- Returns 1, or 0 when the log is not known (any more): it was given up for dead, or Redis came back without it
-- Atomic because a log that another process has given up for dead must not become known again.
#include "../lua/clock.lua"
local prefix, given = KEYS[1], cjson.decode(ARGV[1])
local logs = prefix .. ':logs'
if not given.isNew and not redis.call('ZSCORE', logs, given.log) then return 0 end
redis.call('ZADD', logs, now_ms(prefix), given.log)
return 1
