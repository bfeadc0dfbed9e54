-- Gives an accepted turn its `session` event and its place in the session's lane.
-- KEYS  1 prefix with the hash tag
-- ARGV  1 turn id  2 account id  3 session id  4 accepted at, ms  5 data of the session event  6 request hash
--       7 busy policy (queue, reject, interrupt, collect)  8 turns that may wait  9 found: accepted, orphan or emptied
--       10 key id or ''  11 agent  12 first wait of the sweeper, ms  13 '1' when already cancelled
--       14 depth  15 how long an idle lane is held back with it, ms; 0: not at all  16 '1' when it collects
--       17 conversations of the tenant that may stand in its line
-- Returns {'exists', state, request hash, session id} | {'busy'} | {'full'}
--       | {'laid', head turn id, waiting before it, rings, ms until the lane ripens that is held back, or -1}
-- Atomic because the check for a twin, the limit, the order in the lane and the share must be one decision.
-- A Redis without the `laid` mark came back empty: nothing runs until every inbox has been laid (open.lua), and lanes are put in
-- order of acceptance, so that a new message cannot overtake an old one that has not been found yet.
#include "admit.lua"
#include "held-back.lua"
local prefix = KEYS[1]
local turn_id, account, session, found = ARGV[1], ARGV[2], ARGV[3], ARGV[9]
local member = account .. '/' .. session
local turn, events, lane = prefix .. ':turn:' .. turn_id, prefix .. ':events:' .. turn_id, prefix .. ':lane:' .. member

local known = redis.call('HMGET', turn, 'state', 'requestHash', 'session')
if known[1] then return { 'exists', known[1], known[2], known[3] } end

-- Turns that collect are answered together: those that do not wait in their own number.
local function those_alone()
  local count = 0
  for _, other in ipairs(redis.call('LRANGE', lane, 0, -1)) do
    if redis.call('HGET', prefix .. ':turn:' .. other, 'collects') ~= '1' then count = count + 1 end
  end
  return count
end

local waiting = redis.call('LLEN', lane)
if found == 'accepted' then
  local may_wait = tonumber(ARGV[8])
  if ARGV[7] == 'reject' and waiting > 0 then return { 'busy' } end
  local line = prefix .. ':line:' .. pool_at(account, ARGV[14])
  if waiting == 0 and redis.call('LLEN', line) >= tonumber(ARGV[17]) then return { 'full' } end
  if waiting > may_wait and (ARGV[7] == 'collect' or those_alone() > may_wait) then return { 'full' } end
end

local function place_in_order(accepted_at)
  for _, other in ipairs(redis.call('LRANGE', lane, 0, -1)) do
    if tonumber(redis.call('HGET', prefix .. ':turn:' .. other, 'acceptedAt') or '0') > accepted_at then
      redis.call('LINSERT', lane, 'BEFORE', other, turn_id)
      return
    end
  end
  redis.call('RPUSH', lane, turn_id)
end

local now = now_ms()
local open = redis.call('EXISTS', prefix .. ':laid') == 1
-- 1: what was streamed of it is gone. 2: it has no lane, and nobody knows why; the journal beside its file tells whether it had begun.
local relaid = '0'
if found ~= 'accepted' then relaid = (found == 'emptied' or not open) and '1' or '2' end
redis.call('HSET', turn, 'state', 'waiting', 'account', account, 'session', session, 'acceptedAt', ARGV[4], 'requestHash', ARGV[6],
  'relaid', relaid, 'key', ARGV[10], 'attempts', '0', 'cancelled', ARGV[13], 'depth', ARGV[14], 'collects', ARGV[16])
-- A stream that outlived its turn's hash keeps its entries; `0-1` is then refused and not needed.
redis.pcall('XADD', events, '0-1', 't', 'session', 'd', ARGV[5])
redis.call('HSET', prefix .. ':held:' .. member, 'agent', ARGV[11])
redis.call('PERSIST', prefix .. ':held:' .. member)

local held_back = is_held_back(prefix, member)
if open then
  redis.call('RPUSH', lane, turn_id)
  local rings, ripe_in, hold = {}, -1, tonumber(ARGV[15])
  if waiting == 0 or held_back then
    if hold > 0 then
      ripe_in = hold_back(prefix, member, now, hold, waiting == 0)
    else
      rings = admit(prefix, let_go(prefix, account, session), now, tonumber(ARGV[12]))
    end
  end
  return { 'laid', redis.call('LINDEX', lane, 0), waiting, rings, ripe_in }
end

place_in_order(tonumber(ARGV[4]))
local head = redis.call('LINDEX', lane, 0)
local pool = pool_of(prefix, account, session)
if held_back then
  pool = let_go(prefix, account, session)
elseif waiting > 0 and head == turn_id and pool ~= pool_at(account, ARGV[14]) then
  -- It went before a turn of another depth, which had put the lane into its own line.
  redis.call('LREM', prefix .. ':line:' .. pool, 0, session)
  waiting = 0
end
if waiting == 0 then pool = line_up(prefix, account, session, turn_id) end
redis.call('SADD', prefix .. ':unopened', pool)
return { 'laid', head, waiting, {}, -1 }
