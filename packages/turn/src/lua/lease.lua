-- Takes the lease of a session and with it the head of its lane.
-- KEYS  1 prefix with the hash tag
-- ARGV  1 account id  2 session id  3 worker id  4 lease, ms  5 first wait of the sweeper, ms  6 depth of the bell
-- Returns {'idle', rings} | {'held'}
--       | {'leased', turn id, epoch, starts without a finished step, attempts, relaid (see accept.lua), cancelled, started at}
-- Atomic because two workers may answer two doorbells of one lane. The epoch only rises: max(previous + 1, time in ms), so it
-- rises even over a Redis that came back empty.
#include "admit.lua"
local prefix, account, session = KEYS[1], ARGV[1], ARGV[2]
local member = account .. '/' .. session
local pool = pool_of(prefix, account, session)
local lane, held, admitted, due = prefix .. ':lane:' .. member, prefix .. ':held:' .. member, prefix .. ':admitted:' .. pool, prefix .. ':due'
local now = now_ms()

local head = redis.call('LINDEX', lane, 0)
if not head then
  redis.call('SREM', admitted, session)
  redis.call('ZREM', due, member)
  return { 'idle', admit(prefix, pool, now, tonumber(ARGV[5])) }
end
if redis.call('SISMEMBER', admitted, session) == 0 then return { 'idle', {} } end
-- An old bell, of a head that has ended: a slot of one depth never holds a turn of another. Its own bell rings for this head.
if depth_of(pool) ~= ARGV[6] then return { 'idle', {} } end

local lease = redis.call('HMGET', held, 'epoch', 'until', 'turn')
if lease[2] and tonumber(lease[2]) > now then return { 'held' } end

local epoch = math.max(tonumber(lease[1] or '0') + 1, now)
local starts = 1
if lease[3] == head then starts = redis.call('HINCRBY', held, 'starts', 1) end
redis.call('HSET', held, 'epoch', string.format('%.0f', epoch), 'until', now + tonumber(ARGV[4]), 'worker', ARGV[3], 'turn', head, 'starts', starts, 'rung', 0)
redis.call('ZADD', due, now + tonumber(ARGV[4]), member)
local turn = prefix .. ':turn:' .. head
redis.call('HSET', turn, 'state', 'running')
redis.call('HSETNX', turn, 'startedAt', now)
local attempts = redis.call('HINCRBY', turn, 'attempts', 1)
local facts = redis.call('HMGET', turn, 'relaid', 'cancelled', 'startedAt')
return { 'leased', head, string.format('%.0f', epoch), starts, attempts, facts[1] or '0', facts[2] or '0', facts[3] or '0' }
