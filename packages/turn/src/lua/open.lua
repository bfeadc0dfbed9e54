-- Marks Redis as ready: every inbox has been scanned and missing turns enqueued, so turns run from now on.
-- KEYS  1 prefix with the hash tag
-- ARGV  1 as JSON: runId: of the Redis for which it was done; restore: what began it has put there as `:restore`;
--       epoch: above all that were given before, as text; firstWaitMs: of the reconciler
-- Returns {1 when Redis is ready, a list of {account id, wake}}; not when Redis has been started again, or emptied once
--        more, since the restore began: what it had enqueued is gone
-- Atomic because an acceptance in between must either be in a lane that is opened here, or see the `ready` flag.
#include "lanes.lua"
local prefix, given = KEYS[1], cjson.decode(ARGV[1])
local now = now_ms(prefix)
local run = run_id()
if given.runId ~= run or redis.call('GET', prefix .. ':restore') ~= given.restore then return { 0, {} } end
redis.call('DEL', prefix .. ':restore')
local epoch = redis.call('GET', prefix .. ':epoch')
if not epoch or tonumber(epoch) < tonumber(given.epoch) then redis.call('SET', prefix .. ':epoch', given.epoch) end
redis.call('SET', prefix .. ':ready', run)
-- What this Redis still knows of logs may be older than what it has lost: each process begins another one.
redis.call('DEL', prefix .. ':logs')
-- Wake-ups that were not answered meanwhile.
for _, member in ipairs(redis.call('ZRANGE', prefix .. ':due', 0, -1)) do
  if tonumber(redis.call('HGET', prefix .. ':lease:' .. member, 'until') or '0') <= now then redis.call('ZADD', prefix .. ':due', now, member) end
end
local found = {}
for _, pool in ipairs(redis.call('SMEMBERS', prefix .. ':unopened')) do
  for _, one in ipairs(admit(prefix, pool, now, given.firstWaitMs)) do found[#found + 1] = { account_of(pool), one } end
end
redis.call('DEL', prefix .. ':unopened')
return { 1, found }
