-- Writes entries to a turn's stream and publishes them to live readers, if the writer still holds the lease and the
-- stream is as the writer left it.
-- KEYS  1 prefix with the hash tag
-- ARGV  1 account/session  2 turn id  3 epoch  4 live payload or ''  5 '1' when a step was finished
--       6 entries that the writer knows to be in the stream; -1 when it does not know  then per entry: seq, type, data
--       By position, unlike other scripts: each write of a stream runs it, and with one JSON argument it takes Redis
--       half as long again for a delta, and five times as long for a tool result of 16 KiB.
-- Returns the number of entries in the stream, 0 when the lease belongs to another, -1 when entries are missing:
-- nothing was written
-- Atomic because a worker must not lose its lease between the check and the write. The epoch has one writer: when all
-- of these entries are there already, this is the same call, sent again by a reconnected client. Entries go missing
-- when Redis is killed before its last second is on disk.
#include "add-entry.lua"
#include "publish.lua"
local prefix, epoch, known = KEYS[1], ARGV[3], tonumber(ARGV[6])
local held, events = prefix .. ':lease:' .. ARGV[1], prefix .. ':events:' .. ARGV[2]
local lease = redis.call('HMGET', held, 'epoch', 'turn', 'worker', 'last', 'starts', 'voids', 'reader')
if lease[1] ~= epoch or lease[2] ~= ARGV[2] then return 0 end
local first = 7
local length, count = redis.call('XLEN', events), (#ARGV - first + 1) / 3
if known >= 0 and length ~= known then
  if length == known + count then return length end
  return -1
end
for index = first, #ARGV, 3 do
  local failure = add_entry(events, epoch .. '-' .. ARGV[index], ARGV[index + 1], ARGV[index + 2])
  if failure then return failure end
end
-- Progress: the count of fruitless starts begins anew, and this turn is not blamed when its worker dies; unless it has
-- crashed so often that a step proves nothing.
if ARGV[5] == '1' and lease[4] ~= '1' and not (lease[5] == '0' and lease[6] == '0') then
  redis.call('HSET', held, 'starts', 0, 'voids', 0)
  redis.call('SREM', prefix .. ':unproven:' .. (lease[3] or ''), ARGV[1])
end
if ARGV[4] ~= '' then publish(prefix, ARGV[2], lease[7], ARGV[4]) end
-- Some entries may have been there when the writer did not know the count.
return known >= 0 and length + count or redis.call('XLEN', events)
