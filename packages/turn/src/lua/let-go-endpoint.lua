-- Gives an endpoint back.
-- KEYS  1 the endpoint's lease
-- ARGV  1 token of the sender
-- Returns 1 when it was the caller's.
-- Atomic because it may have become another's since the caller looked.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
