-- Renews the leases of one worker, and finds cancels that pub/sub lost.
-- KEYS  1 prefix with the hash tag
-- ARGV  1 lease, ms  then per lease: account/session, epoch, turn id
-- Returns {members whose lease is lost, turn ids that are cancelled}
-- Atomic because a lease must not be prolonged after it has passed to another.
#include "clock.lua"
local prefix = KEYS[1]
local until_ms = now_ms(prefix) + tonumber(ARGV[1])
local lost, cancelled = {}, {}
for index = 2, #ARGV, 3 do
  local held = prefix .. ':lease:' .. ARGV[index]
  local lease = redis.call('HMGET', held, 'epoch', 'turn', 'until')
  if lease[1] == ARGV[index + 1] and lease[2] == ARGV[index + 2] and lease[3] then
    redis.call('HSET', held, 'until', until_ms)
    redis.call('ZADD', prefix .. ':due', until_ms, ARGV[index])
    if redis.call('HGET', prefix .. ':turn:' .. ARGV[index + 2], 'cancelled') == '1' then cancelled[#cancelled + 1] = ARGV[index + 2] end
  else
    lost[#lost + 1] = ARGV[index]
  end
end
return { lost, cancelled }
