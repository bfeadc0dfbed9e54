-- Included by the scripts of budgets. One hash for each tenant holds, for each period that has a limit, by its start,
-- which is where it begins and its kind (the first day of a month begins when the month does):
--   <start>|seed           which sum of the usage records it began with; missing: it has to be summed up (again)
--   <start>|tokens, nanos  spent: tokens; billionths of a dollar
--   <start>|turn:<id>      tokens:nanos of that turn which are in the sum, of turns whose share is not the sum of what
--                          was settled since the seed; without a seed: of turns that have settled since it was lost
-- A second hash has a field for each call under way, <turn>:<attempt>:<any> = until:tokens:nanos, and for each that was
-- settled a moment ago, until:settled. A third one has the highest part in per cent that was reported of each limit,
-- <start>|<unit>:<limit>: sums are forgotten after an hour without a call, and what was reported is not reported again
-- for that. All of them may be lost at any time.

local counters_keep_ms = 3600000

local function split_pair(text)
  local tokens, nanos = string.match(text, '^(%d+):(%d+)$')
  return tonumber(tokens), tonumber(nanos)
end

local function join_pair(tokens, nanos)
  return string.format('%.0f:%.0f', tokens, nanos)
end

-- Adds what a turn has spent. Its whole total is known, so what is in the sum already is never added twice, and what
-- was lost with an earlier seed comes back. `call`: what one call took.
local function count_turn(spent_key, start, turn, call)
  local field = start .. '|turn:' .. turn.id
  local known = redis.call('HGET', spent_key, field)
  local begun = turn.seeds[start]
  local tokens, nanos = call.tokens, call.nanos
  if known then
    local known_tokens, known_nanos = split_pair(known)
    tokens, nanos = math.max(0, turn.tokens - known_tokens), math.max(0, turn.nanos - known_nanos)
  elseif begun and begun ~= redis.call('HGET', spent_key, start .. '|seed') then
    tokens, nanos = turn.tokens, turn.nanos
    known = true
  end
  if known then redis.call('HSET', spent_key, field, join_pair(turn.tokens, turn.nanos)) end
  if tokens > 0 then redis.call('HINCRBY', spent_key, start .. '|tokens', string.format('%.0f', tokens)) end
  if nanos > 0 then redis.call('HINCRBY', spent_key, start .. '|nanos', string.format('%.0f', nanos)) end
end

-- Periods that are over go when the next one begins. `starts`: those that are not, as a set.
local function drop_ended(key, starts)
  for _, field in ipairs(redis.call('HKEYS', key)) do
    if not starts[string.match(field, '^[^|]+')] then redis.call('HDEL', key, field) end
  end
end

local function read_spent(spent_key, start)
  local found = redis.call('HMGET', spent_key, start .. '|tokens', start .. '|nanos', start .. '|seed')
  return tonumber(found[1] or '0'), tonumber(found[2] or '0'), found[3]
end
