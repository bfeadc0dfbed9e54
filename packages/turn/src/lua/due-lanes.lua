-- Ends the debounce of lanes that are due.
-- KEYS  1 prefix with the hash tag
-- ARGV  1 lanes at most  2 first wait of the reconciler, ms
-- Returns {a list of {account id, wake}, ms until the next one is due, or -1 when none is debounced}
-- Atomic because every gateway and the reconciler ask at once, and a message may move the due time meanwhile.
#include "admit.lua"
#include "debounced.lua"
#include "ready.lua"
local prefix = KEYS[1]
local debounced = prefix .. ':debounced'
-- A Redis that is not ready runs nothing yet.
if not is_ready(prefix) then return { {}, -1 } end
local now = now_ms(prefix)
local found = {}
for _, member in ipairs(redis.call('ZRANGEBYSCORE', debounced, '-inf', now, 'LIMIT', 0, tonumber(ARGV[1]))) do
  local slash = string.find(member, '/', 1, true)
  local account, session = string.sub(member, 1, slash - 1), string.sub(member, slash + 1)
  local pool = end_debounce(prefix, account, session)
  if pool then
    for _, one in ipairs(admit(prefix, pool, now, tonumber(ARGV[2]))) do found[#found + 1] = { account, one } end
  end
end
local next_one = redis.call('ZRANGE', debounced, 0, 0, 'WITHSCORES')
return { found, next_one[2] and math.max(math.ceil(tonumber(next_one[2]) - now), 0) or -1 }
