-- Ends the debounce of lanes that are due.
-- KEYS  1 prefix with the hash tag
-- ARGV  1 as JSON: limit: lanes at most; firstWaitMs: of the reconciler
-- Returns {a list of {account id, wake}, ms until the next one is due, or -1 when none is debounced}
-- Atomic because every gateway and the reconciler ask at once, and a message may move the due time meanwhile.
#include "lanes.lua"
local prefix, given = KEYS[1], cjson.decode(ARGV[1])
local debounced = prefix .. ':debounced'
-- A Redis that is not ready runs nothing yet.
if not is_ready(prefix) then return { {}, -1 } end
local now = now_ms(prefix)
local found = {}
for _, member in ipairs(redis.call('ZRANGEBYSCORE', debounced, '-inf', now, 'LIMIT', 0, given.limit)) do
  local slash = string.find(member, '/', 1, true)
  local account, session = string.sub(member, 1, slash - 1), string.sub(member, slash + 1)
  local pool = end_debounce(prefix, account, session)
  if pool then
    for _, one in ipairs(admit(prefix, pool, now, given.firstWaitMs)) do found[#found + 1] = { account, one } end
  end
end
local next_one = redis.call('ZRANGE', debounced, 0, 0, 'WITHSCORES')
return { found, next_one[2] and math.max(math.ceil(tonumber(next_one[2]) - now), 0) or -1 }
