-- Looks at a tenant's budgets, and reserves what a model call is expected to take where all of them allow it. Before it
-- does, it gives back what earlier attempts of the same turn have reserved: their worker died in a call.
-- KEYS  1 the tenant's sums (counters.lua)  2 its calls under way  3 prefix with the hash tag
-- ARGV  1 as JSON: counters: of start, limits: of tokens, nanos (either may be missing); share of the limits that may
--       be used; seeds?: by start: id, tokens, nanos, turns by id: tokens, nanos; forget?: drop the sums first; turn?:
--       id, attempt, tokens, nanos (its whole total), seeds by start; call?: id (turn:attempt:any), tokens, nanos,
--       keptMs
-- Returns {'unknown', starts without a sum, turns that have settled without one} or {'ok' or 'spent', counter and unit
-- that are spent, reserved tokens, reserved nanos, for each counter: tokens, nanos, seed}
-- Atomic because many workers reserve at once, and each has to see what the others hold.
#include "../lua/clock.lua"
#include "counters.lua"
local spent_key, held_key, given = KEYS[1], KEYS[2], cjson.decode(ARGV[1])
local now = now_ms(KEYS[3])
if given.forget then redis.call('DEL', spent_key) end

local function fields_of_turns(start)
  local found = {}
  local head = start .. '|turn:'
  for _, field in ipairs(redis.call('HKEYS', spent_key)) do
    if string.sub(field, 1, #head) == head then found[#found + 1] = field end
  end
  return found
end

for start, seed in pairs(given.seeds or {}) do
  if redis.call('HEXISTS', spent_key, start .. '|seed') == 0 then
    local turns = fields_of_turns(start)
    if #turns > 0 then redis.call('HDEL', spent_key, unpack(turns)) end
    local tokens, nanos = seed.tokens, seed.nanos
    for id, total in pairs(seed.turns) do
      tokens, nanos = tokens + total.tokens, nanos + total.nanos
      redis.call('HSET', spent_key, start .. '|turn:' .. id, join_pair(total.tokens, total.nanos))
    end
    redis.call('HSET', spent_key, start .. '|seed', seed.id, start .. '|tokens', string.format('%.0f', tokens), start .. '|nanos', string.format('%.0f', nanos))
  end
end

local unknown, late, starts = {}, {}, {}
for _, counter in ipairs(given.counters) do
  starts[counter.start] = true
  if redis.call('HEXISTS', spent_key, counter.start .. '|seed') == 0 then
    unknown[#unknown + 1] = counter.start
    for _, field in ipairs(fields_of_turns(counter.start)) do
      local tokens, nanos = split_pair(redis.call('HGET', spent_key, field))
      late[#late + 1] = { string.sub(field, #counter.start + 7), tokens, nanos }
    end
  end
end
if #unknown > 0 then
  drop_ended(spent_key, starts)
  return { 'unknown', unknown, late }
end

local function is_of_earlier_attempt(call_id)
  if not (given.turn and given.call) then return false end
  local turn, attempt = string.match(call_id, '^([^:]+):(%d+):')
  return turn == given.turn.id and tonumber(attempt) < given.turn.attempt
end

local held_tokens, held_nanos = 0, 0
local held = redis.call('HGETALL', held_key)
for index = 1, #held, 2 do
  local until_ms, rest = string.match(held[index + 1], '^(%d+):(.*)$')
  if tonumber(until_ms) <= now or (rest ~= 'settled' and is_of_earlier_attempt(held[index])) then
    redis.call('HDEL', held_key, held[index])
  elseif rest ~= 'settled' and not (given.call and held[index] == given.call.id) then
    local tokens, nanos = split_pair(rest)
    held_tokens, held_nanos = held_tokens + tokens, held_nanos + nanos
  end
end

-- What is reserved decides about further calls alone: most of it comes back.
local counted_tokens, counted_nanos = 0, 0
if given.call then counted_tokens, counted_nanos = held_tokens, held_nanos end
local sums, spent_at, spent_unit = {}, 0, ''
for index, counter in ipairs(given.counters) do
  if given.turn then count_turn(spent_key, counter.start, given.turn, { tokens = 0, nanos = 0 }) end
  local tokens, nanos, seed = read_spent(spent_key, counter.start)
  sums[index] = { tokens, nanos, seed }
  if spent_at == 0 then
    if counter.limits.tokens and tokens + counted_tokens >= counter.limits.tokens * given.share then
      spent_at, spent_unit = index, 'tokens'
    elseif counter.limits.nanos and nanos + counted_nanos >= counter.limits.nanos * given.share then
      spent_at, spent_unit = index, 'usd'
    end
  end
end
if given.call and spent_at == 0 then
  local value = string.format('%.0f:', now + given.call.keptMs) .. join_pair(given.call.tokens, given.call.nanos)
  redis.call('HSET', held_key, given.call.id, value)
  redis.call('PEXPIRE', held_key, math.max(counters_keep_ms, given.call.keptMs))
end
if given.call or given.seeds then redis.call('PEXPIRE', spent_key, counters_keep_ms) end
return { spent_at == 0 and 'ok' or 'spent', spent_at, spent_unit, held_tokens, held_nanos, sums }
