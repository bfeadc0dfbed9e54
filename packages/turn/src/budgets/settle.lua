-- Counts what a model call took, and gives its reservation back. Done twice for one call, it counts once.
-- KEYS  1 the tenant's sums (counters.lua)  2 its calls under way  3 prefix with the hash tag
-- ARGV  1 as JSON: counters: of start, limits: of tokens, nanos (either may be missing); percents: parts to report, the
--       smallest first; turn: id, tokens, nanos (its whole total, this call included), seeds by start; call: id,
--       tokens, nanos; settledMs for which the call is remembered
-- Returns for each part that is reached for the first time: {counter, unit, per cent, spent of that unit}
-- Atomic because a call is counted and no longer reserved in the same moment.
#include "../lua/clock.lua"
#include "counters.lua"
local spent_key, held_key, given = KEYS[1], KEYS[2], cjson.decode(ARGV[1])
local now = now_ms(KEYS[3])
local held = redis.call('HGET', held_key, given.call.id)
if held and string.find(held, ':settled', 1, true) then return {} end
redis.call('HSET', held_key, given.call.id, string.format('%.0f:settled', now + given.settledMs))
if redis.call('PTTL', held_key) < given.settledMs then redis.call('PEXPIRE', held_key, given.settledMs) end

local reached = {}
for index, counter in ipairs(given.counters) do
  local start = counter.start
  if redis.call('HEXISTS', spent_key, start .. '|seed') == 0 then
    redis.call('HSET', spent_key, start .. '|turn:' .. given.turn.id, join_pair(given.turn.tokens, given.turn.nanos))
  else
    count_turn(spent_key, start, given.turn, given.call)
    local tokens, nanos = read_spent(spent_key, start)
    for _, one in ipairs({ { 'tokens', tokens, counter.limits.tokens }, { 'usd', nanos, counter.limits.nanos } }) do
      local unit, spent, limit = one[1], one[2], one[3]
      local field = start .. '|reached:' .. unit
      local before = tonumber(redis.call('HGET', spent_key, field) or '0')
      for _, percent in ipairs(given.percents) do
        if limit and percent > before and spent * 100 >= limit * percent then
          reached[#reached + 1] = { index, unit, percent, spent }
          redis.call('HSET', spent_key, field, percent)
        end
      end
    end
  end
end
redis.call('PEXPIRE', spent_key, counters_keep_ms)
return reached
