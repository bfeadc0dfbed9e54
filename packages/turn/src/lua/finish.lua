-- Announces the end of a turn, takes it out of its lane and admits the next lane.
-- KEYS  1 prefix with the hash tag
-- ARGV  1 as JSON: tenantId, sessionId, turnId, epoch, state; payload: for live readers; entries: of seq, type, json;
--       before: entries that the writer knows to be in the stream, -1 when it does not know; answered: ids of the turns
--       that were answered with it; streamTtlSeconds, recordTtlSeconds; firstWaitMs: of the reconciler
-- Returns {'lost'} | {'cut'}: entries are missing in the stream, nothing was written | {'finished', wakeups}
-- Atomic because the terminal event, the lane and the share change together or not at all.
#include "lanes.lua"
#include "add-entry.lua"
local prefix, given = KEYS[1], cjson.decode(ARGV[1])
local account, session, turn_id, epoch = given.tenantId, given.sessionId, given.turnId, given.epoch
local member = account .. '/' .. session
local lane, held = prefix .. ':lane:' .. member, prefix .. ':lease:' .. member
local turn, events = prefix .. ':turn:' .. turn_id, prefix .. ':events:' .. turn_id

-- The same call, sent again by a reconnected client.
if redis.call('HGET', turn, 'endedBy') == epoch then return { 'finished', {} } end
if redis.call('HGET', held, 'epoch') ~= epoch or redis.call('LINDEX', lane, 0) ~= turn_id then return { 'lost' } end

local now = now_ms(prefix)
if given.before >= 0 and redis.call('XLEN', events) ~= given.before then return { 'cut' } end
for _, entry in ipairs(given.entries) do
  local failure = add_entry(events, epoch .. '-' .. entry.seq, entry.type, entry.json)
  if failure then return failure end
end
redis.call('PUBLISH', prefix .. ':live:' .. turn_id, given.payload)
redis.call('HSET', turn, 'state', given.state, 'endedAt', wall_ms(), 'endedBy', epoch)
redis.call('EXPIRE', turn, given.recordTtlSeconds)
redis.call('EXPIRE', events, given.streamTtlSeconds)

redis.call('HDEL', prefix .. ':logged:' .. account, turn_id)
redis.call('LPOP', lane)
redis.call('SREM', prefix .. ':unproven:' .. (redis.call('HGET', held, 'worker') or ''), member)
redis.call('HDEL', held, 'until', 'worker', 'turn', 'starts', 'voids', 'last', 'woken')
local pool = pool_of(prefix, account, session)
local head = redis.call('LINDEX', lane, 0)
local function was_answered(id)
  for _, answered in ipairs(given.answered) do
    if answered == id then return true end
  end
  return false
end
if head and was_answered(head) then
  -- The next turn is already answered and only its end is to be announced: the lane keeps its place, or a contact with
  -- many messages would wait in line for each.
  return { 'finished', { wake(prefix, pool, session, now, given.firstWaitMs) } }
end
redis.call('SREM', prefix .. ':admitted:' .. pool, session)
redis.call('ZREM', prefix .. ':due', member)
local wakeups = {}
if head then
  local next_pool = line_up(prefix, account, session, head)
  if next_pool ~= pool then wakeups = admit(prefix, next_pool, now, given.firstWaitMs) end
else
  -- Long enough that a frozen worker of this epoch cannot meet a lower one.
  redis.call('EXPIRE', held, 3600)
end
for _, one in ipairs(admit(prefix, pool, now, given.firstWaitMs)) do wakeups[#wakeups + 1] = one end
return { 'finished', wakeups }
