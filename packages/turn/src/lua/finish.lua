-- Announces the end of a turn, takes it out of its lane and admits whoever is next.
-- KEYS  1 prefix with the hash tag
-- ARGV  1 account id  2 session id  3 turn id  4 epoch  5 live payload  6 state  7 stream time to live, s  8 record time to live, s
--       9 first wait of the sweeper, ms  10 ids of turns that were answered with it, each between commas
--       11 entries that the writer knows to be in the stream; -1 when it does not know  then per entry: seq, type, data
-- Returns {'lost'} | {'cut'}: entries are missing in the stream, nothing was written | {'finished', rings}
-- Atomic because the terminal event, the lane and the share change together or not at all.
#include "admit.lua"
#include "add-entry.lua"
local prefix, account, session, turn_id, epoch = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local member = account .. '/' .. session
local lane, held = prefix .. ':lane:' .. member, prefix .. ':held:' .. member
local turn, events = prefix .. ':turn:' .. turn_id, prefix .. ':events:' .. turn_id

-- The same call, sent again by a client that reconnected.
if redis.call('HGET', turn, 'endedBy') == epoch then return { 'finished', {} } end
if redis.call('HGET', held, 'epoch') ~= epoch or redis.call('LINDEX', lane, 0) ~= turn_id then return { 'lost' } end

local now = now_ms(prefix)
local known = tonumber(ARGV[11])
if known >= 0 and redis.call('XLEN', events) ~= known then return { 'cut' } end
for index = 12, #ARGV, 3 do
  local failure = add_entry(events, epoch .. '-' .. ARGV[index], ARGV[index + 1], ARGV[index + 2])
  if failure then return failure end
end
redis.call('PUBLISH', prefix .. ':live:' .. turn_id, ARGV[5])
redis.call('HSET', turn, 'state', ARGV[6], 'endedAt', wall_ms(), 'endedBy', epoch)
redis.call('EXPIRE', turn, ARGV[8])
redis.call('EXPIRE', events, ARGV[7])

redis.call('LPOP', lane)
redis.call('SREM', prefix .. ':unproven:' .. (redis.call('HGET', held, 'worker') or ''), member)
redis.call('HDEL', held, 'until', 'worker', 'turn', 'starts', 'voids', 'last', 'rung')
local pool = pool_of(prefix, account, session)
local head = redis.call('LINDEX', lane, 0)
if head and string.find(ARGV[10], ',' .. head .. ',', 1, true) then
  -- Its answer is out, and only its end is to be told: it keeps the place, or whoever says much would stand in line for each message.
  return { 'finished', { ring(prefix, pool, session, now, tonumber(ARGV[9])) } }
end
redis.call('SREM', prefix .. ':admitted:' .. pool, session)
redis.call('ZREM', prefix .. ':due', member)
local rings = {}
if head then
  local next_pool = line_up(prefix, account, session, head)
  if next_pool ~= pool then rings = admit(prefix, next_pool, now, tonumber(ARGV[9])) end
else
  -- Long enough that a frozen worker of this epoch cannot meet a lower one.
  redis.call('EXPIRE', held, 3600)
end
for _, one in ipairs(admit(prefix, pool, now, tonumber(ARGV[9]))) do rings[#rings + 1] = one end
return { 'finished', rings }
