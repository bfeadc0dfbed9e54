-- Included, after admit.lua, by the scripts that meet a lane which is debounced. A lane whose turns collect may wait
-- for more of them before its first one runs: it has turns and stands in no line and no share, so it is not woken,
-- reconciled or counted. `debounced` scores it by its due time; its lease key (`held`) records since when it waits.

-- A lane is debounced for at most four times the debounce of one message, from the first message on.
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

-- Makes the lane a normal one again. Returns its pool, or nil when the lane is empty.
local function end_debounce(prefix, account, session)
  local member = account .. '/' .. session
  redis.call('ZREM', prefix .. ':debounced', member)
  redis.call('HDEL', prefix .. ':lease:' .. member, 'debouncedSince')
  local head = redis.call('LINDEX', prefix .. ':lane:' .. member, 0)
  return head and line_up(prefix, account, session, head)
end
