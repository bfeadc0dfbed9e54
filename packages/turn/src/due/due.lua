-- Included by the scripts of due work. A due set scores its members by the time at which each is to be processed. A
-- claimed member stands in `:claimed` instead, scored by the service time at which the claim ends, with its claim's
-- number in `:numbers`; numbers only rise, over all sets. A member that is added while it is claimed stands in the due
-- set as well: it is processed again when the claim is released.
-- ARGV  1 JSON. In each: nowMs, when times are due by the caller's clock; kind, when tenants' backlogs are counted
#include "../lua/clock.lua"
local prefix, due = KEYS[1], KEYS[2]
local claimed, numbers = due .. ':claimed', due .. ':numbers'
local given = cjson.decode(ARGV[1])
local service_now = now_ms(prefix)
local now = given.nowMs or service_now
-- Members that wait for their pace, or are claimed, count in a tenant's backlog as well.
local backlog_ms = 10000

local function in_text(number)
  return string.format('%.0f', number)
end

local function is_claimed(member)
  local until_ms = redis.call('ZSCORE', claimed, member)
  return until_ms and tonumber(until_ms) > service_now
end

-- How many members of the same tenant are due by then; nil: this member is no longer due.
local function note_backlog(member, at)
  if not given.kind then return 0 end
  local key = prefix .. ':due-of:' .. string.match(member, '^[^/]+') .. '/' .. given.kind
  if not at then return redis.call('ZREM', key, member) end
  redis.call('ZADD', key, in_text(at), member)
  return redis.call('ZCOUNT', key, '-inf', in_text(at + backlog_ms))
end

-- {member, time, ms until then, backlog}
local function wakeup(member, at)
  return { member, in_text(at), math.max(math.ceil(at - now), 0), note_backlog(member, at) }
end
