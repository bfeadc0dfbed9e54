-- Included, after admit.lua, by the scripts that meet a lane which is debounced.
-- A lane whose turns collect may wait for more of them before its first one runs: it has turns, and stands in no line and no share, so that
-- nothing of it is woken for, swept or counted. `debounced` has it with the time at which it is due, its `held` since when it is there.

-- It may be held for four times as long as one message holds it, from the first of them on.
local function debounce(prefix, member, now, hold, is_first)
  local held = prefix .. ':lease:' .. member
  if is_first then redis.call('HSET', held, 'debouncedSince', now) end
  local since = tonumber(redis.call('HGET', held, 'debouncedSince') or now)
  local due = math.min(now + hold, since + 4 * hold)
  redis.call('ZADD', prefix .. ':debounced', due, member)
  return math.max(due - now, 0)
end

local function is_debounced(prefix, member)
  return redis.call('ZSCORE', prefix .. ':debounced', member) ~= false
end

-- From now on it is a lane like any other. Answers where it stands, or nil when there is nothing in it.
local function end_debounce(prefix, account, session)
  local member = account .. '/' .. session
  redis.call('ZREM', prefix .. ':debounced', member)
  redis.call('HDEL', prefix .. ':lease:' .. member, 'debouncedSince')
  local head = redis.call('LINDEX', prefix .. ':lane:' .. member, 0)
  return head and line_up(prefix, account, session, head)
end
