-- Claims members that are due, and members whose claimant is gone.
-- KEYS  1 prefix with the hash tag  2 the due set
-- ARGV  1 JSON, as in due.lua: member, or limit and lateMs, by which members are overdue; claimMs
-- Returns {a list of {member, number of the claim}, ms until the next member is due or the next claim ends, or -1}
-- Atomic because every process asks at once.
#include "due.lua"
-- A wake-up by another machine's clock, or a rounded one, may be this early.
local early_ms = 20
local found = {}

local function claim(member)
  local counter = prefix .. ':due-claims'
  -- In a Redis that came back empty, numbers begin above all that were given before: at its time in microseconds.
  if redis.call('EXISTS', counter) == 0 then
    local time = redis.call('TIME')
    redis.call('SET', counter, in_text(tonumber(time[1]) * 1000000 + tonumber(time[2])))
  end
  local number = redis.call('INCR', counter)
  redis.call('ZREM', due, member)
  redis.call('ZADD', claimed, in_text(service_now + given.claimMs), member)
  redis.call('HSET', numbers, member, in_text(number))
  note_backlog(member, now)
  found[#found + 1] = { member, number }
end

if given.member then
  local at = redis.call('ZSCORE', due, given.member)
  local is_due = (at and tonumber(at) <= now + early_ms) or redis.call('ZSCORE', claimed, given.member)
  if is_due and not is_claimed(given.member) then claim(given.member) end
else
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', claimed, '-inf', in_text(service_now), 'LIMIT', 0, given.limit)) do claim(member) end
  -- Members that were added while they are claimed are skipped.
  local most = given.limit + redis.call('ZCARD', claimed)
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', due, '-inf', in_text(now - given.lateMs), 'LIMIT', 0, most)) do
    if #found >= given.limit then break end
    if not is_claimed(member) then claim(member) end
  end
end
local next_ms = -1
for key, clock in pairs({ [due] = now, [claimed] = service_now }) do
  local first = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
  local in_ms = first[2] and math.max(math.ceil(tonumber(first[2]) - clock), 0)
  if in_ms and (next_ms < 0 or in_ms < next_ms) then next_ms = in_ms end
end
return { found, next_ms }
