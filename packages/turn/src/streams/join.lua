-- From now on live messages of the turn also go to its own channel, on which the caller has subscribed.
-- KEYS  1 prefix with the hash tag
-- ARGV  1 turn id
-- Returns 1, or 0 when the turn is not known: it may be enqueued later, for other readers only
-- Atomic because a worker may lease the turn meanwhile, which copies the reader to the lease.
local prefix, turn_id = KEYS[1], ARGV[1]
local known = redis.call('HMGET', prefix .. ':turn:' .. turn_id, 'reader', 'account', 'session')
if not known[2] then return 0 end
local reader = known[1] or ''
if reader == '' or string.sub(reader, -1) == '+' then return 1 end
redis.call('HSET', prefix .. ':turn:' .. turn_id, 'reader', reader .. '+')
local held = prefix .. ':lease:' .. known[2] .. '/' .. known[3]
if redis.call('HGET', held, 'turn') == turn_id then redis.call('HSET', held, 'reader', reader .. '+') end
return 1
