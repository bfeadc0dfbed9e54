-- Gives an accepted turn its `session` event and its place in the session's lane.
-- KEYS  1 prefix with the hash tag
-- ARGV  1 as JSON: turnId, tenantId, sessionId, acceptedAtMs, requestHash, keyId or '', agent, depth, collects,
--       cancelled; sessionEvent: data of the session event; busy: queue, reject, interrupt or collect; found: accepted,
--       orphan or emptied; maxWaiting: turns that may wait in the lane; maxLine: lanes of the tenant that may stand in
--       its line; debounceMs: how long an idle lane is debounced, 0: not at all; firstWaitMs: of the reconciler;
--       log: id of the write-ahead log that has the turn, or '' for one with an inbox file; body: the turn, with a log;
--       reader: who follows the turn from now on (publish.lua), or ''; sends: how wake-ups are sent from here
--       (wakeups.lua); without it they are returned, for a queue in another slot
-- Returns {'exists', state, request hash, session id, its log, '1' when it was unclear} | {'busy'} | {'full'}
--       | {'enqueued', head turn id, waiting before it, ms until the lane is due that is debounced, or -1, '1'
--         when times of acceptance do not determine its place, or its log is not known (log-renew.lua): when Redis
--         loses it, only a file and a number on disk do, wake-ups to send, if any}
-- Atomic because the check for a duplicate, the limit, the order in the lane and the share must be one decision. A
-- Redis that is not ready (lanes.lua) runs nothing until every inbox has been scanned (open.lua). Turns accepted
-- meanwhile are `late`: behind all that are found. Found turns stand in order of acceptance.
#include "lanes.lua"
#include "add-entry.lua"
#include "wakeups.lua"
#include "publish.lua"
local prefix = KEYS[1]
local given = cjson.decode(ARGV[1])
local turn_id, account, session, found = given.turnId, given.tenantId, given.sessionId, given.found
local depth = tostring(given.depth)
local member = account .. '/' .. session
local turn, events, lane = prefix .. ':turn:' .. turn_id, prefix .. ':events:' .. turn_id, prefix .. ':lane:' .. member

local known = redis.call('HMGET', turn, 'state', 'requestHash', 'session', 'log', 'unclear')
if known[1] then return { 'exists', known[1], known[2], known[3], known[4] or '', known[5] or '0' } end

-- Turns that collect are answered together and have a limit of their own.
local function those_alone()
  local count = 0
  for _, other in ipairs(redis.call('LRANGE', lane, 0, -1)) do
    if redis.call('HGET', prefix .. ':turn:' .. other, 'collects') ~= '1' then count = count + 1 end
  end
  return count
end

local waiting = redis.call('LLEN', lane)
local in_line = waiting == 0 and redis.call('LLEN', prefix .. ':line:' .. pool_at(account, depth)) or 0
if found == 'accepted' then
  if given.busy == 'reject' and waiting > 0 then return { 'busy' } end
  if waiting == 0 and in_line >= given.maxLine then return { 'full' } end
  if waiting > given.maxWaiting and (given.busy == 'collect' or those_alone() > given.maxWaiting) then return { 'full' } end
end

local now = now_ms(prefix)
local held = prefix .. ':lease:' .. member

-- A turn is never placed before a running one.
local function place_in_order(accepted_at)
  local lease = redis.call('HMGET', held, 'turn', 'until')
  for index, other in ipairs(redis.call('LRANGE', lane, 0, -1)) do
    local known_of = redis.call('HMGET', prefix .. ':turn:' .. other, 'acceptedAt', 'late')
    local is_running = index == 1 and lease[1] == other and tonumber(lease[2] or '0') > now
    if not is_running and (known_of[2] == '1' or tonumber(known_of[1] or '0') > accepted_at) then
      redis.call('LINSERT', lane, 'BEFORE', other, turn_id)
      return
    end
  end
  redis.call('RPUSH', lane, turn_id)
end

-- A stream that outlived its turn's hash keeps its entries; `0-1` is then refused and not needed.
local failure = add_entry(events, '0-1', 'session', given.sessionEvent)
if failure then return failure end

local run = run_id()
local open = is_ready(prefix, run)
local late = (found == 'accepted' and not open) and '1' or '0'
local accepted_at = given.acceptedAtMs
local latest = waiting > 0 and tonumber(redis.call('HGET', held, 'latest') or '0') or 0
-- Another process with another clock accepted an earlier turn that still waits.
local is_unknown = given.log ~= '' and not redis.call('ZSCORE', prefix .. ':logs', given.log)
local unclear = (found == 'accepted' and (late == '1' or latest >= accepted_at or is_unknown)) and '1' or '0'
-- 1: its stream is gone. 2: it has no lane for an unknown reason; the journal beside its file shows whether it had
-- begun.
local restored = '0'
if found ~= 'accepted' then restored = (found == 'emptied' or not open) and '1' or '2' end
redis.call('HSET', turn, 'state', 'waiting', 'account', account, 'session', session, 'acceptedAt', string.format('%.3f', accepted_at),
  'requestHash', given.requestHash, 'restored', restored, 'key', given.keyId, 'attempts', '0', 'cancelled', given.cancelled and '1' or '0',
  'depth', depth, 'collects', given.collects and '1' or '0', 'late', late, 'run', run, 'reader', given.reader, 'log', given.log, 'unclear', unclear)
if given.log ~= '' then redis.call('HSET', prefix .. ':logged:' .. account, turn_id, given.body) end
local runs = open and waiting == 0 and given.debounceMs == 0
local added = redis.call('HSET', held, 'agent', given.agent, 'latest', string.format('%.3f', math.max(latest, accepted_at)),
  unpack(runs and { 'depth', depth, 'woken', 1 } or {}))
-- The key of an earlier turn expires.
if added < 2 then redis.call('PERSIST', held) end

tell_feed(prefix, account, session, turn_id, 'waiting')

local debounced = waiting > 0 and is_debounced(prefix, member)
if open then
  redis.call('RPUSH', lane, turn_id)
  local wakeups, due_in = {}, -1
  if waiting == 0 or debounced then
    if given.debounceMs > 0 then
      due_in = debounce(prefix, member, now, given.debounceMs, waiting == 0)
    elseif debounced then
      wakeups = admit(prefix, end_debounce(prefix, account, session), now, given.firstWaitMs)
    else
      wakeups = let_run(prefix, account, session, { turn = turn_id, depth = depth }, in_line, now, given.firstWaitMs)
    end
  end
  local head = waiting == 0 and turn_id or redis.call('LINDEX', lane, 0)
  if not given.sends then return { 'enqueued', head, waiting, due_in, unclear, wakeups } end
  send_wakeups(prefix, account, wakeups, given.sends)
  return { 'enqueued', head, waiting, due_in, unclear }
end

if late == '1' then redis.call('RPUSH', lane, turn_id) else place_in_order(accepted_at) end
local head = redis.call('LINDEX', lane, 0)
local pool = pool_of(prefix, account, session)
if debounced then
  pool = end_debounce(prefix, account, session)
elseif waiting > 0 and head == turn_id and pool ~= pool_at(account, depth) then
  -- The turn went before one of another depth, which had put the lane into its own line.
  redis.call('LREM', prefix .. ':line:' .. pool, 0, session)
  redis.call('SREM', prefix .. ':admitted:' .. pool, session)
  waiting = 0
end
if waiting == 0 then pool = line_up(prefix, account, session, turn_id) end
redis.call('SADD', prefix .. ':unopened', pool)
return { 'enqueued', head, waiting, -1, unclear }
