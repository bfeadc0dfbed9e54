-- Writes entries to a turn's stream and tells live readers, if the writer still holds the lease.
-- KEYS  1 prefix with the hash tag
-- ARGV  1 account/session  2 turn id  3 epoch  4 live payload or ''  5 '1' when a step was finished  then per entry: seq, type, data
-- Returns 1, or 0 when the lease belongs to another.
-- Atomic because a worker that lost its lease must not speak between the check and the write. An entry that is already there is
-- this same call, sent again by a client that reconnected: the epoch has one writer.
local prefix, epoch = KEYS[1], ARGV[3]
local held, events = prefix .. ':held:' .. ARGV[1], prefix .. ':events:' .. ARGV[2]
local lease = redis.call('HMGET', held, 'epoch', 'turn')
if lease[1] ~= epoch or lease[2] ~= ARGV[2] then return 0 end
for index = 6, #ARGV, 3 do
  redis.pcall('XADD', events, epoch .. '-' .. ARGV[index], 't', ARGV[index + 1], 'd', ARGV[index + 2])
end
-- Progress: the count of fruitless starts begins anew.
if ARGV[5] == '1' then redis.call('HSET', held, 'starts', 0) end
if ARGV[4] ~= '' then redis.call('PUBLISH', prefix .. ':live:' .. ARGV[2], ARGV[4]) end
return 1
