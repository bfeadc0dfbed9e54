-- Counts what a model call took, and gives its reservation back. Done twice for one call, it counts once.
-- KEYS  1 the tenant's sums (counters.lua)  2 its calls under way  3 prefix with the hash tag  4 what was reported
-- ARGV  1 as JSON: counters: of start, limits: of tokens, nanos (either may be missing); percents: parts to report, the
--       smallest first; turn: id, tokens, nanos (its whole total, this call included), seeds by start; call: id,
--       tokens, nanos; settledMs for which the call is remembered, and reachedMs for which a report is
-- Returns for each part of a limit that is reached for the first time in its period: {counter, unit, per cent, spent of
-- that unit}
-- Atomic because a call is counted and no longer reserved in the same moment.
#include "../lua/clock.lua"
#include "counters.lua"
local spent_key, held_key, reached_key, given = KEYS[1], KEYS[2], KEYS[4], cjson.decode(ARGV[1])
local now = now_ms(KEYS[3])
local held = redis.call('HGET', held_key, given.call.id)
if held and string.find(held, ':settled', 1, true) then return {} end
redis.call('HSET', held_key, given.call.id, string.format('%.0f:settled', now + given.settledMs))
if redis.call('PTTL', held_key) < given.settledMs then redis.call('PEXPIRE', held_key, given.settledMs) end

local reached, starts = {}, {}
for index, counter in ipairs(given.counters) do
  local start = counter.start
  starts[start] = true
  if redis.call('HEXISTS', spent_key, start .. '|seed') == 0 then
    redis.call('HSET', spent_key, start .. '|turn:' .. given.turn.id, join_pair(given.turn.tokens, given.turn.nanos))
  else
    count_turn(spent_key, start, given.turn, given.call)
    local tokens, nanos = read_spent(spent_key, start)
    for _, one in ipairs({ { 'tokens', tokens, counter.limits.tokens }, { 'usd', nanos, counter.limits.nanos } }) do
      local unit, spent, limit = one[1], one[2], one[3]
      local field = limit and start .. '|' .. unit .. ':' .. string.format('%.0f', limit)
      local before = limit and tonumber(redis.call('HGET', reached_key, field) or '0')
      for _, percent in ipairs(given.percents) do
        if limit and percent > before and spent * 100 >= limit * percent then
          reached[#reached + 1] = { index, unit, percent, spent }
          redis.call('HSET', reached_key, field, percent)
        end
      end
    end
  end
end
if #reached > 0 then
  drop_ended(reached_key, starts)
  redis.call('PEXPIRE', reached_key, given.reachedMs)
end
redis.call('PEXPIRE', spent_key, counters_keep_ms)
return reached
