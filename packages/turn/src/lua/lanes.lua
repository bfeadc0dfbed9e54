-- Included by the scripts of lanes: shares and lines, debounce, readiness. All keys carry one hash tag (KEYS[1] ends in
-- it), so every name built from it lives in the same slot of a Redis Cluster.
--
-- A tenant has a share, and a line of lanes that wait for it, at each depth: turns that came from an endpoint or
-- channel stand at depth 0, turns that a turn of depth d started at d + 1. A turn that waits for others keeps its place
-- while it waits, and they need none of its own depth: depth d waits for d + 1 only, and the deepest waits for nothing,
-- so no two ever wait for one another. A lane stands where its head belongs; the lane's lease key (`held`) records the
-- depth.

#include "clock.lua"

-- A tenant's pool at a depth, as in `acme` or `acme@1`: no tenant id contains `@`.
local function pool_at(account, depth)
  if depth == '0' then return account end
  return account .. '@' .. depth
end

local function account_of(pool)
  return string.match(pool, '^[^@]+')
end

local function depth_of(pool)
  return string.match(pool, '@(%d+)$') or '0'
end

-- Where a lane stands now.
local function pool_of(prefix, account, session)
  return pool_at(account, redis.call('HGET', prefix .. ':lease:' .. account .. '/' .. session, 'depth') or '0')
end

-- Puts a lane at the end of the line in which its head has to stand.
local function line_up(prefix, account, session, head)
  local depth = redis.call('HGET', prefix .. ':turn:' .. head, 'depth') or '0'
  redis.call('HSET', prefix .. ':lease:' .. account .. '/' .. session, 'depth', depth)
  local pool = pool_at(account, depth)
  redis.call('RPUSH', prefix .. ':line:' .. pool, session)
  return pool
end

-- A wake-up is about to be sent for this lane: until it is answered the reconciler checks again, a little later each
-- time.
local function wake(prefix, pool, session, now, first_wait)
  local member = account_of(pool) .. '/' .. session
  local woken = redis.call('HINCRBY', prefix .. ':lease:' .. member, 'woken', 1)
  local wait = math.min(first_wait * 2 ^ math.min(woken - 1, 10), 30000)
  redis.call('ZADD', prefix .. ':due', now + wait, member)
  local head = redis.call('LINDEX', prefix .. ':lane:' .. member, 0)
  return { session, head or '', redis.call('SCARD', prefix .. ':admitted:' .. pool), now, tonumber(depth_of(pool)) }
end

local function share_of(prefix)
  return tonumber(redis.call('GET', prefix .. ':share') or '16')
end

-- Fills the share from its line, oldest first. Returns a list of wake-ups. `now` may be nil: seldom needed.
local function admit(prefix, pool, now, first_wait)
  local admitted, line = prefix .. ':admitted:' .. pool, prefix .. ':line:' .. pool
  local wakeups = {}
  if redis.call('LLEN', line) == 0 then return wakeups end
  now = now or now_ms(prefix)
  local share = share_of(prefix)
  while redis.call('SCARD', admitted) < share do
    local session = redis.call('LPOP', line)
    if not session then break end
    if redis.call('SADD', admitted, session) == 1 then
      wakeups[#wakeups + 1] = wake(prefix, pool, session, now, first_wait)
    end
  end
  return wakeups
end

-- Admits a lane that was empty, or puts it into its line: `line_up` and `admit` for a head that the caller knows and
-- has noted as woken. `in_line`: how many lanes stand there. Returns a list of wake-ups.
local function let_run(prefix, account, session, head, in_line, now, first_wait)
  local pool, member = pool_at(account, head.depth), account .. '/' .. session
  local held, admitted = prefix .. ':lease:' .. member, prefix .. ':admitted:' .. pool
  local count = in_line == 0 and redis.call('SCARD', admitted)
  if not count or count >= share_of(prefix) then
    redis.call('HSET', held, 'woken', 0)
    redis.call('RPUSH', prefix .. ':line:' .. pool, session)
    return in_line > 0 and admit(prefix, pool, now, first_wait) or {}
  end
  if redis.call('SADD', admitted, session) == 0 then return {} end
  redis.call('ZADD', prefix .. ':due', now + first_wait, member)
  return { { session, head.turn, count + 1, now, tonumber(head.depth) } }
end

-- A debounced lane: one whose turns collect may wait for more of them before its first one runs. It has turns and
-- stands in no line and no share, so it is not woken, reconciled or counted. `debounced` scores it by its due time; its
-- lease key (`held`) records since when it waits.

-- A lane is debounced for at most four times the debounce of one message, from the first message on.
local function debounce(prefix, member, now, debounce_ms, is_first)
  local held = prefix .. ':lease:' .. member
  if is_first then redis.call('HSET', held, 'debouncedSince', now) end
  local since = tonumber(redis.call('HGET', held, 'debouncedSince') or now)
  local due = math.min(now + debounce_ms, since + 4 * debounce_ms)
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

-- Whether this Redis has all that was accepted: `:ready` has the run id of the Redis in which the lanes were restored
-- from the inboxes. It is missing in a Redis that came back empty, and is another's in one that was started again and
-- may have lost its last second: until the inboxes have been scanned (open.lua), nothing starts.
local function is_ready(prefix, id)
  local enqueued = redis.call('GET', prefix .. ':ready')
  return enqueued ~= false and enqueued == (id or run_id())
end
