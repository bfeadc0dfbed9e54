-- Keeps the leases of one worker alive, and hears of cancels that pub/sub lost.
-- KEYS  1 prefix with the hash tag
-- ARGV  1 lease, ms  then per lease: account/session, epoch, turn id
-- Returns {members whose lease is lost, turn ids that are cancelled}
-- Atomic because a lease must not be prolonged after it has passed to another.
local prefix = KEYS[1]
local time = redis.call('TIME')
local until_ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000) + tonumber(ARGV[1])
local lost, cancelled = {}, {}
for index = 2, #ARGV, 3 do
  local held = prefix .. ':held:' .. ARGV[index]
  if redis.call('HGET', held, 'epoch') == ARGV[index + 1] and redis.call('HEXISTS', held, 'until') == 1 then
    redis.call('HSET', held, 'until', until_ms)
    redis.call('ZADD', prefix .. ':due', until_ms, ARGV[index])
    if redis.call('HGET', prefix .. ':turn:' .. ARGV[index + 2], 'cancelled') == '1' then cancelled[#cancelled + 1] = ARGV[index + 2] end
  else
    lost[#lost + 1] = ARGV[index]
  end
end
return { lost, cancelled }
