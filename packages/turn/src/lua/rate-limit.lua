-- Counts one request in a rolling window, exactly, over all gateways.
-- KEYS  1 the tenant's window
-- ARGV  1 as JSON: limit; windowMs; request: a unique name of this one
-- Returns {1 when allowed else 0, remaining, ms until the oldest one leaves}
-- Atomic because several gateways count at once: exactly `limit` get through.
local given = cjson.decode(ARGV[1])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local window = given.windowMs * 1000
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - window)
local used = redis.call('ZCARD', KEYS[1])
local allowed = 0
if used < given.limit then
  redis.call('ZADD', KEYS[1], now, given.request)
  redis.call('PEXPIRE', KEYS[1], given.windowMs)
  allowed = 1
  used = used + 1
end
local oldest = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
local wait = 0
if oldest[2] then wait = math.ceil((tonumber(oldest[2]) + window - now) / 1000) end
return { allowed, given.limit - used, wait }
