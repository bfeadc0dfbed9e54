-- Marks a turn as cancelled and notifies the worker that runs it, or, of one that waits, the readers of the feed: pages
-- show it as ended. A lane that is debounced with it becomes due at once.
-- KEYS  1 prefix with the hash tag
-- ARGV  1 as JSON: turnId; firstWaitMs: of the reconciler
-- Returns a list of {account id, wake}
-- Atomic because the turn may end meanwhile.
#include "lanes.lua"
#include "publish.lua"
local prefix, given = KEYS[1], cjson.decode(ARGV[1])
local turn = prefix .. ':turn:' .. given.turnId
local known = redis.call('HMGET', turn, 'state', 'account', 'session')
if known[1] ~= 'waiting' and known[1] ~= 'running' then return {} end
redis.call('HSET', turn, 'cancelled', '1')
redis.call('PUBLISH', prefix .. ':cancel', given.turnId)
local found = {}
local account, session = known[2], known[3]
if known[1] == 'waiting' then tell_feed(prefix, account, session, given.turnId, 'waiting') end
if is_debounced(prefix, account .. '/' .. session) and is_ready(prefix) then
  local pool = end_debounce(prefix, account, session)
  for _, one in ipairs(pool and admit(prefix, pool, now_ms(prefix), given.firstWaitMs) or {}) do found[#found + 1] = { account, one } end
end
return found
