-- Marks a turn as cancelled and notifies the worker that runs it. A lane that is debounced with it becomes due at once.
-- KEYS  1 prefix with the hash tag
-- ARGV  1 turn id  2 first wait of the reconciler, ms
-- Returns a list of {account id, wake}
-- Atomic because the turn may end meanwhile.
#include "admit.lua"
#include "debounced.lua"
#include "ready.lua"
local prefix = KEYS[1]
local turn = prefix .. ':turn:' .. ARGV[1]
local known = redis.call('HMGET', turn, 'state', 'account', 'session')
if known[1] ~= 'waiting' and known[1] ~= 'running' then return {} end
redis.call('HSET', turn, 'cancelled', '1')
redis.call('PUBLISH', prefix .. ':cancel', ARGV[1])
local found = {}
local account, session = known[2], known[3]
if is_debounced(prefix, account .. '/' .. session) and is_ready(prefix) then
  local pool = end_debounce(prefix, account, session)
  for _, one in ipairs(pool and admit(prefix, pool, now_ms(prefix), tonumber(ARGV[2])) or {}) do found[#found + 1] = { account, one } end
end
return found
