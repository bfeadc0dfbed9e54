-- Puts a lane in order of acceptance: turns without a number as they stand, then numbered ones (packages/tenant,
-- lane-order.ts).
-- KEYS  1 prefix with the hash tag
-- ARGV  1 as JSON: tenantId, sessionId; numbered: ids of numbered turns, in order; epoch: of the caller's lease of its
--       head, or ''; firstWaitMs: of the reconciler
-- Returns {1 when the caller's head is no longer the head, and its lease is given back as if it had not been taken,
--        else 0, wakeups}
-- Atomic because turns come and go meanwhile. A head that another worker runs stays where it is.
#include "lanes.lua"
local prefix, given = KEYS[1], cjson.decode(ARGV[1])
local account, session = given.tenantId, given.sessionId
local member = account .. '/' .. session
local lane, held = prefix .. ':lane:' .. member, prefix .. ':lease:' .. member
local now = now_ms(prefix)

local position = {}
for index, turn in ipairs(given.numbered) do position[turn] = index end
local turns = redis.call('LRANGE', lane, 0, -1)
local head = turns[1]
if not head then return { 0, {} } end
local lease = redis.call('HMGET', held, 'epoch', 'until', 'turn')
local is_leased = lease[3] == head and tonumber(lease[2] or '0') > now
local is_callers = is_leased and lease[1] == given.epoch

local sorted, numbered = {}, {}
local keeps_head = is_leased and not is_callers
if keeps_head then sorted[1] = head end
for index, turn in ipairs(turns) do
  if not (keeps_head and index == 1) then
    local into = position[turn] and numbered or sorted
    into[#into + 1] = turn
  end
end
table.sort(numbered, function(left, right) return position[left] < position[right] end)
for _, turn in ipairs(numbered) do sorted[#sorted + 1] = turn end

local is_same = true
for index, turn in ipairs(turns) do is_same = is_same and turn == sorted[index] end
if is_same then return { 0, {} } end
redis.call('DEL', lane)
for _, turn in ipairs(sorted) do redis.call('RPUSH', lane, turn) end
if sorted[1] == head then return { 0, {} } end

if is_callers then
  local turn = prefix .. ':turn:' .. head
  redis.call('HSET', turn, 'state', 'waiting')
  if redis.call('HINCRBY', turn, 'attempts', -1) < 1 then redis.call('HDEL', turn, 'startedAt', 'began') end
  redis.call('SREM', prefix .. ':unproven:' .. (redis.call('HGET', held, 'worker') or ''), member)
  redis.call('HDEL', held, 'until', 'worker', 'turn', 'starts', 'voids', 'last')
end
if is_debounced(prefix, member) then return { 0, {} } end
local pool = pool_of(prefix, account, session)
local next_pool = pool_at(account, redis.call('HGET', prefix .. ':turn:' .. sorted[1], 'depth') or '0')
local wakeups = {}
if next_pool ~= pool then
  redis.call('LREM', prefix .. ':line:' .. pool, 0, session)
  redis.call('SREM', prefix .. ':admitted:' .. pool, session)
  redis.call('ZREM', prefix .. ':due', member)
  line_up(prefix, account, session, sorted[1])
  if is_ready(prefix) then
    for _, freed in ipairs({ pool, next_pool }) do
      for _, one in ipairs(admit(prefix, freed, now, given.firstWaitMs)) do wakeups[#wakeups + 1] = one end
    end
  else
    redis.call('SADD', prefix .. ':unopened', next_pool)
  end
elseif is_callers then
  wakeups[1] = wake(prefix, pool, session, now, given.firstWaitMs)
end
return { is_callers and 1 or 0, wakeups }
