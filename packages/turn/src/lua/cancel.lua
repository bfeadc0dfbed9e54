-- Marks a turn as cancelled and tells whoever runs it.
-- KEYS  1 prefix with the hash tag
-- ARGV  1 turn id
-- Returns the turn's state, or nil when it is not known.
-- Atomic because the turn may end meanwhile.
local turn = KEYS[1] .. ':turn:' .. ARGV[1]
local state = redis.call('HGET', turn, 'state')
if state == 'waiting' or state == 'running' then
  redis.call('HSET', turn, 'cancelled', '1')
  redis.call('PUBLISH', KEYS[1] .. ':cancel', ARGV[1])
end
return state
