-- Releases a lease without an end of the turn: the worker drains, or cannot continue for a reason outside the turn.
-- KEYS  1 prefix with the hash tag
-- ARGV  1 as JSON: tenantId, sessionId, epoch; waitMs: before the next start; charged: the start counts against the
--       turn; firstWaitMs: of the reconciler
-- Returns {} or {wake}: woken at once when the wait is 0, by the reconciler after it otherwise.
-- Atomic because a lease that has moved on must stay as it is.
#include "lanes.lua"
local prefix, given = KEYS[1], cjson.decode(ARGV[1])
local account, session = given.tenantId, given.sessionId
local member = account .. '/' .. session
local held = prefix .. ':lease:' .. member
if redis.call('HGET', held, 'epoch') ~= given.epoch or not redis.call('HGET', held, 'until') then return {} end
local now = now_ms(prefix)
redis.call('SREM', prefix .. ':unproven:' .. (redis.call('HGET', held, 'worker') or ''), member)
redis.call('HSET', held, 'until', 0)
-- A finished step has already reset the count.
if not given.charged and tonumber(redis.call('HGET', held, 'starts') or '0') > 0 then redis.call('HINCRBY', held, 'starts', -1) end
local turn = redis.call('HGET', held, 'turn')
if turn then
  redis.call('HSET', prefix .. ':turn:' .. turn, 'state', 'waiting')
  if given.charged then redis.call('HINCRBY', prefix .. ':turn:' .. turn, 'crashes', 1) end
end
if given.waitMs > 0 then
  redis.call('ZADD', prefix .. ':due', now + given.waitMs, member)
  return {}
end
return { wake(prefix, pool_of(prefix, account, session), session, now, given.firstWaitMs) }
