-- Wakes lanes that are due again: a wake-up was not answered, or a lease was not renewed.
-- KEYS  1 prefix with the hash tag
-- ARGV  1 as JSON: limit: lanes at most; firstWaitMs: of the reconciler
-- Returns a list of {account id, wake}
-- Atomic because a lease may be taken while we look.
#include "lanes.lua"
local prefix, given = KEYS[1], cjson.decode(ARGV[1])
local due = prefix .. ':due'
local now = now_ms(prefix)
local found = {}
for _, member in ipairs(redis.call('ZRANGEBYSCORE', due, '-inf', now, 'LIMIT', 0, given.limit)) do
  local slash = string.find(member, '/', 1, true)
  local account, session = string.sub(member, 1, slash - 1), string.sub(member, slash + 1)
  local held, pool = prefix .. ':lease:' .. member, pool_of(prefix, account, session)
  local until_ms = tonumber(redis.call('HGET', held, 'until') or '0')
  if redis.call('LLEN', prefix .. ':lane:' .. member) == 0 or redis.call('SISMEMBER', prefix .. ':admitted:' .. pool, session) == 0 then
    redis.call('ZREM', due, member)
    redis.call('SREM', prefix .. ':admitted:' .. pool, session)
    for _, one in ipairs(admit(prefix, pool, now, given.firstWaitMs)) do found[#found + 1] = { account, one } end
  elseif until_ms > now then
    redis.call('ZADD', due, until_ms, member)
  else
    found[#found + 1] = { account, wake(prefix, pool, session, now, given.firstWaitMs) }
  end
end
return found
