-- Included, after admit.lua, by the scripts that meet a lane which is held back.
-- A lane whose turns collect may wait for more of them before its first one runs: it has turns, and stands in no line and no share, so that
-- nothing of it is rung for, swept or counted. `held-back` has it with the time at which it ripens, its `held` since when it is there.

-- It may be held for four times as long as one message holds it, from the first of them on.
local function hold_back(prefix, member, now, hold, is_first)
  local held = prefix .. ':held:' .. member
  if is_first then redis.call('HSET', held, 'heldSince', now) end
  local since = tonumber(redis.call('HGET', held, 'heldSince') or now)
  local ripe = math.min(now + hold, since + 4 * hold)
  redis.call('ZADD', prefix .. ':held-back', ripe, member)
  return math.max(ripe - now, 0)
end

local function is_held_back(prefix, member)
  return redis.call('ZSCORE', prefix .. ':held-back', member) ~= false
end

-- From now on it is a lane like any other. Answers where it stands, or nil when there is nothing in it.
local function let_go(prefix, account, session)
  local member = account .. '/' .. session
  redis.call('ZREM', prefix .. ':held-back', member)
  redis.call('HDEL', prefix .. ':held:' .. member, 'heldSince')
  local head = redis.call('LINDEX', prefix .. ':lane:' .. member, 0)
  return head and line_up(prefix, account, session, head)
end
