-- Takes an endpoint for one sender, or keeps it longer.
-- KEYS  1 the endpoint's lease
-- ARGV  1 token of the sender  2 how long, ms
-- Returns 1 when it is the caller's, 0 when it is another's.
-- Atomic because another may take it between the look and the prolongation.
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
