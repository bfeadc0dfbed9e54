-- Takes the lease of a session and with it the head of its lane.
-- KEYS  1 prefix with the hash tag
-- ARGV  1 as JSON: tenantId, sessionId, workerId, leaseMs; depth: of the wake-up; maxStarts: that a turn has without a
--       finished step; maxCrashes: that a turn may have; alone: no other turn of the worker may be what kills it;
--       firstWaitMs: of the reconciler
-- Returns {'idle', wakeups} | {'held'}
--       | {'alone', turn id, deaths that could not be attributed}: this is its last start; the worker must ask again
--         when the turn would run alone
--       | {'leased', turn id, epoch, starts without a finished step, attempts, restored (see accept.lua), cancelled,
--         started at, ms since then, epoch of the first lease after Redis was started again, or '', '1' when this is
--         its last start whatever steps it finishes, the turn, or '' when it has an inbox file}
-- Atomic because two workers may answer two wake-ups of one lane. The epoch is a counter that open.lua sets above all
-- epochs ever drawn, so it also rises when Redis comes back empty or without its last second.
#include "lanes.lua"
#include "publish.lua"
local prefix, given = KEYS[1], cjson.decode(ARGV[1])
local account, session = given.tenantId, given.sessionId
local member = account .. '/' .. session
local lane, held, due = prefix .. ':lane:' .. member, prefix .. ':lease:' .. member, prefix .. ':due'
local lease = redis.call('HMGET', held, 'until', 'turn', 'starts', 'worker', 'voids', 'depth')
local pool = pool_at(account, lease[6] or '0')
local admitted = prefix .. ':admitted:' .. pool
local now, wall = now_ms(prefix)

-- The reconciler sends another wake-up when Redis is ready.
local run = run_id()
if not is_ready(prefix, run) then return { 'held' } end

local head = redis.call('LINDEX', lane, 0)
if not head then
  redis.call('SREM', admitted, session)
  redis.call('ZREM', due, member)
  return { 'idle', admit(prefix, pool, now, given.firstWaitMs) }
end
if redis.call('SISMEMBER', admitted, session) == 0 then return { 'idle', {} } end
-- An old wake-up, of a head that has ended: a slot of one depth never holds a turn of another. This head has a wake-up
-- of its own.
if depth_of(pool) ~= tostring(given.depth) then return { 'idle', {} } end

if lease[1] and tonumber(lease[1]) > now then return { 'held' } end

local turn = prefix .. ':turn:' .. head
local starts, most, voids = 1, given.maxStarts, tonumber(lease[5] or '0')
local known = redis.call('HMGET', turn, 'crashes', 'run', 'cut', 'startedAt', 'began', 'attempts', 'restored', 'cancelled', 'reader')
-- Counts over the whole turn: a finished step does not reset it.
local crashes, most_crashes = tonumber(known[1] or '0'), given.maxCrashes
if lease[2] == head then
  starts = tonumber(lease[3] or '0') + 1
  -- The lease was not released: its process died or froze.
  local crashed = lease[1] ~= '0'
  if crashed then crashes = crashes + 1 end
  if crashes >= most_crashes then starts = math.max(starts, most + 1) end
  -- Only a turn that was alone in its worker is charged with its last start.
  if starts > most and crashed then
    local unproven = prefix .. ':unproven:' .. (lease[4] or '')
    if redis.call('SCARD', unproven) ~= 1 or redis.call('SISMEMBER', unproven, member) == 0 then
      starts = most
      crashes = math.min(crashes, most_crashes - 1)
      voids = voids + 1
    end
  end
else
  voids = 0
end
local is_last = crashes >= most_crashes - 1
if is_last then starts = math.max(starts, most) end
if starts == most and not given.alone then return { 'alone', head, voids } end

local epoch = string.format('%.0f', redis.call('INCR', prefix .. ':epoch'))
redis.call('HSET', held, 'epoch', epoch, 'until', now + given.leaseMs, 'worker', given.workerId, 'turn', head, 'starts', starts, 'woken', 0, 'voids', voids,
  'last', is_last and '1' or '0', 'reader', known[9] or '')
-- It expires when the worker is gone (heartbeat.lua).
redis.call('SADD', prefix .. ':unproven:' .. given.workerId, member)
redis.call('ZADD', due, now + given.leaseMs, member)
-- The turn was here when Redis was started again: its stream entries and the record of its lease may be lost.
local cut = known[2] ~= run and epoch or known[3] or ''
local started_at, began, attempts = known[4] or string.format('%.0f', wall), tonumber(known[5] or now), tonumber(known[6] or '0') + 1
redis.call('HSET', turn, 'state', 'running', 'run', run, 'crashes', crashes, 'cut', cut, 'startedAt', started_at, 'began', began,
  'attempts', attempts)
tell_feed(prefix, account, session, head, 'running')
return { 'leased', head, epoch, starts, attempts, known[7] or '0', known[8] or '0', started_at, now - began, cut, is_last and '1' or '0',
  redis.call('HGET', prefix .. ':logged:' .. account, head) or '' }
