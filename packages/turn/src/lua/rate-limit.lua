-- Counts one request in a rolling window, exactly, over all gateways: as one, or as what it weighs.
-- KEYS  1 the tenant's window
-- ARGV  1 as JSON: limit; windowMs; request: a unique name of this one; weight: of each request of the window, or none
-- Returns {1 when allowed else 0, remaining, ms until the oldest one leaves}
-- Atomic because several gateways count at once: exactly `limit` get through, never more than it in weight.
local given = cjson.decode(ARGV[1])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local window = given.windowMs * 1000
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - window)
local weight = given.weight or 1
local request = given.request
local used = 0
if given.weight then
  -- Each name ends with what it weighs.
  request = request .. ':' .. string.format('%.0f', weight)
  for _, counted in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do used = used + tonumber(string.match(counted, '%d+$')) end
else
  used = redis.call('ZCARD', KEYS[1])
end
local allowed = 0
if used + weight <= given.limit then
  redis.call('ZADD', KEYS[1], now, request)
  redis.call('PEXPIRE', KEYS[1], given.windowMs)
  allowed = 1
  used = used + weight
end
local oldest = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
local wait = 0
if oldest[2] then wait = math.ceil((tonumber(oldest[2]) + window - now) / 1000) end
return { allowed, given.limit - used, wait }
