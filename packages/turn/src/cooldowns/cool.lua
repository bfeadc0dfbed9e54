-- Notes that a model, or a provider, failed or answered again, and reports it to all processes.
-- KEYS  1 what cools down: until:failures by name  2 prefix with the hash tag
-- ARGV  1 as JSON: change?: name, failed, leastMs which the provider has asked for; firstMs, maxMs: the first and the
--       longest time, which doubles with each failure; memoryMs for which failures are counted together; namesMax
-- Returns all that cools down: a list of {name, ms left}; 0 or less: it may be asked by one caller
-- Atomic because many processes meet one outage at once: together they count as one failure.
#include "../lua/clock.lua"
local cooling, given = KEYS[1], cjson.decode(ARGV[1])
local now = now_ms(KEYS[2])

local function read(name)
  local found = redis.call('HGET', cooling, name)
  if not found then return nil, 0 end
  local until_ms, failures = string.match(found, '^(%d+):(%d+)$')
  return tonumber(until_ms), tonumber(failures)
end

local function announce(name, ms)
  redis.call('PUBLISH', KEYS[2] .. ':cooldowns', cjson.encode({ name = name, ms = ms }))
end

local change = given.change
if change and not change.failed and redis.call('HDEL', cooling, change.name) == 1 then announce(change.name, -1) end
if change and change.failed then
  local until_ms, failures = read(change.name)
  local is_known = until_ms ~= nil
  if not (is_known and until_ms > now) and (is_known or redis.call('HLEN', cooling) < given.namesMax) then
    local ms = math.max(change.leastMs, math.min(given.maxMs, given.firstMs * 2 ^ math.min(failures, 20)))
    redis.call('HSET', cooling, change.name, string.format('%.0f:%d', now + ms, failures + 1))
    redis.call('PEXPIRE', cooling, math.ceil(ms) + given.memoryMs)
    announce(change.name, ms)
  end
end

local all = {}
for _, name in ipairs(redis.call('HKEYS', cooling)) do
  local until_ms = read(name)
  if until_ms + given.memoryMs < now then redis.call('HDEL', cooling, name)
  else all[#all + 1] = { name, until_ms - now } end
end
return all
