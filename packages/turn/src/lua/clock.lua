-- Included by the scripts that compare times. Service time, in ms: Redis' clock, but it never goes back and never jumps
-- ahead, whatever is done to that clock. Reconcilers and heartbeats note it every two seconds, workers that renew
-- leases every second (`clock`); what Redis' clock does beyond that between two notes is left out. A lease of a dead
-- worker therefore ends after its length, and one of a living worker does not end because a clock was set, or because
-- Redis hung or a machine slept. For people there is `wall_ms`.

local function wall_ms()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

-- Longer than the time between two notes. Shorter than a lease (4 s) less the time between two of its renewals (1 s):
-- the last note before a step or a pause may be that much younger than the last renewal.
local clock_gap_ms = 2500

-- Returns the time for people, too.
local function now_ms(prefix)
  local wall = wall_ms()
  local noted = redis.call('HMGET', prefix .. ':clock', 'last', 'shift')
  if not noted[1] then return wall, wall end
  local last = tonumber(noted[1])
  return math.min(math.max(wall + tonumber(noted[2]), last), last + clock_gap_ms), wall
end

local function note_time(prefix)
  local now, wall = now_ms(prefix)
  redis.call('HSET', prefix .. ':clock', 'last', now, 'shift', now - wall)
  return now
end

-- Tells this Redis from another: one that was started again, or took over from another, has another run id and may
-- have lost its last second. A Redis that does not expose its run id has none here: then only an empty one is noticed.
local function run_id()
  local info = redis.pcall('INFO', 'server')
  if type(info) ~= 'string' then return '' end
  local _, at = string.find(info, 'run_id:', 1, true)
  return at and string.sub(info, at + 1, at + 40) or ''
end
