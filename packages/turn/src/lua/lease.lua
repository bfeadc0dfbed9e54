-- Takes the lease of a session and with it the head of its lane.
-- KEYS  1 prefix with the hash tag
-- ARGV  1 account id  2 session id  3 worker id  4 lease, ms  5 first wait of the sweeper, ms  6 depth of the bell
-- Returns {'idle', rings} | {'held'}
--       | {'leased', turn id, epoch, starts without a finished step, attempts, relaid (see accept.lua), cancelled, started at, ms since then,
--          epoch of the first lease after Redis was started again, or ''}
-- Atomic because two workers may answer two doorbells of one lane. The epoch is a counter that open.lua sets above all that was ever drawn from it, so it
-- rises over a Redis that came back empty, or without its last second.
#include "admit.lua"
#include "ready.lua"
local prefix, account, session = KEYS[1], ARGV[1], ARGV[2]
local member = account .. '/' .. session
local pool = pool_of(prefix, account, session)
local lane, held, admitted, due = prefix .. ':lane:' .. member, prefix .. ':held:' .. member, prefix .. ':admitted:' .. pool, prefix .. ':due'
local now = now_ms(prefix)

-- The sweeper rings again when it is.
local run = run_id()
if not is_ready(prefix, run) then return { 'held' } end

local head = redis.call('LINDEX', lane, 0)
if not head then
  redis.call('SREM', admitted, session)
  redis.call('ZREM', due, member)
  return { 'idle', admit(prefix, pool, now, tonumber(ARGV[5])) }
end
if redis.call('SISMEMBER', admitted, session) == 0 then return { 'idle', {} } end
-- An old bell, of a head that has ended: a slot of one depth never holds a turn of another. Its own bell rings for this head.
if depth_of(pool) ~= ARGV[6] then return { 'idle', {} } end

local lease = redis.call('HMGET', held, 'until', 'turn')
if lease[1] and tonumber(lease[1]) > now then return { 'held' } end

local epoch = string.format('%.0f', redis.call('INCR', prefix .. ':epoch'))
local starts = 1
if lease[2] == head then starts = redis.call('HINCRBY', held, 'starts', 1) end
redis.call('HSET', held, 'epoch', epoch, 'until', now + tonumber(ARGV[4]), 'worker', ARGV[3], 'turn', head, 'starts', starts, 'rung', 0)
redis.call('ZADD', due, now + tonumber(ARGV[4]), member)
local turn = prefix .. ':turn:' .. head
-- It was here when Redis was started again: what was streamed of it, and that it was leased, may be among what is lost.
if redis.call('HGET', turn, 'run') ~= run then redis.call('HSET', turn, 'cut', epoch) end
redis.call('HSET', turn, 'state', 'running', 'run', run)
redis.call('HSETNX', turn, 'startedAt', wall_ms())
redis.call('HSETNX', turn, 'began', now)
local attempts = redis.call('HINCRBY', turn, 'attempts', 1)
local facts = redis.call('HMGET', turn, 'relaid', 'cancelled', 'startedAt', 'began', 'cut')
return { 'leased', head, epoch, starts, attempts, facts[1] or '0', facts[2] or '0', facts[3] or '0', now - tonumber(facts[4]), facts[5] or '' }
