-- Announces the end of a turn, takes it out of its lane and admits the next lane.
-- KEYS  1 prefix with the hash tag
-- ARGV  1 as JSON: tenantId, sessionId, turnId, epoch, state; payload: for live readers; entries: of seq, type, json;
--       before: entries that the writer knows to be in the stream, -1 when it does not know; answered: ids of the turns
--       that were answered with it; streamTtlSeconds, recordTtlSeconds; firstWaitMs: of the reconciler; sends: as in
--       accept.lua; wakeup: that the worker answers, to be completed from here
-- Returns 'lost' | 'cut': entries are missing in the stream, nothing was written | 'finished' | without `sends`, the
--       wake-ups to send
-- Atomic because the terminal event, the lane and the share change together or not at all.
#include "lanes.lua"
#include "add-entry.lua"
#include "publish.lua"
#include "wakeups.lua"
local prefix, given = KEYS[1], cjson.decode(ARGV[1])
local account, session, turn_id, epoch = given.tenantId, given.sessionId, given.turnId, given.epoch
local member = account .. '/' .. session
local lane, held = prefix .. ':lane:' .. member, prefix .. ':lease:' .. member
local turn, events = prefix .. ':turn:' .. turn_id, prefix .. ':events:' .. turn_id

local lease = redis.call('HMGET', held, 'epoch', 'worker', 'depth', 'starts', 'last', 'reader')
local first = redis.call('LRANGE', lane, 0, 1)
if lease[1] ~= epoch or first[1] ~= turn_id then
  -- The same call, sent again by a reconnected client.
  if redis.call('HGET', turn, 'endedBy') == epoch then return 'finished' end
  return 'lost'
end

if given.before >= 0 and redis.call('XLEN', events) ~= given.before then return 'cut' end
for _, entry in ipairs(given.entries) do
  local failure = add_entry(events, epoch .. '-' .. entry.seq, entry.type, entry.json)
  if failure then return failure end
end
publish(prefix, turn_id, lease[6], given.payload)
local wall = wall_ms()
tell_feed(prefix, account, session, turn_id, given.state)
redis.call('HSET', turn, 'state', given.state, 'endedAt', wall, 'endedBy', epoch)
redis.call('EXPIRE', turn, given.recordTtlSeconds)
redis.call('EXPIRE', events, given.streamTtlSeconds)

redis.call('HDEL', prefix .. ':logged:' .. account, turn_id)
if given.wakeup then complete_wakeup(prefix, given.wakeup, wall, given.keptWakeups) end
redis.call('LPOP', lane)
-- A turn that has finished a step is no longer among them (append.lua).
if lease[4] ~= '0' or lease[5] == '1' then redis.call('SREM', prefix .. ':unproven:' .. (lease[2] or ''), member) end
redis.call('HDEL', held, 'until', 'worker', 'turn', 'starts', 'voids', 'last', 'woken', 'reader')
local pool, head = pool_at(account, lease[3] or '0'), first[2]
local function send_or_return(wakeups)
  if not given.sends then return wakeups end
  send_wakeups(prefix, account, wakeups, given.sends)
  return 'finished'
end
local function was_answered(id)
  for _, answered in ipairs(given.answered) do
    if answered == id then return true end
  end
  return false
end
if head and was_answered(head) then
  -- The next turn is already answered and only its end is to be announced: the lane keeps its place, or a contact with
  -- many messages would wait in line for each.
  local next_one = wake(prefix, pool, session, now_ms(prefix), given.firstWaitMs)
  return send_or_return({ next_one })
end
redis.call('SREM', prefix .. ':admitted:' .. pool, session)
redis.call('ZREM', prefix .. ':due', member)
local wakeups = {}
if head then
  local next_pool = line_up(prefix, account, session, head)
  if next_pool ~= pool then wakeups = admit(prefix, next_pool, nil, given.firstWaitMs) end
else
  -- Long enough that a frozen worker of this epoch cannot meet a lower one.
  redis.call('EXPIRE', held, 3600)
end
for _, one in ipairs(admit(prefix, pool, nil, given.firstWaitMs)) do wakeups[#wakeups + 1] = one end
return send_or_return(wakeups)
