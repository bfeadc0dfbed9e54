-- Keeps a claim, or releases it and plans when its member is to be processed again.
-- KEYS  1 prefix with the hash tag  2 the due set
-- ARGV  1 JSON, as in due.lua: member; claim, its number; claimMs, to keep it for so long; or delayMs, at, or neither:
--       nothing is left to do
-- Returns {} when the claim is another's, or gone; {member, time, ms until then, backlog} when it is to be processed
--        again; else {member}
-- Atomic because a claim that has passed on must stay as it is, and a time that was added meanwhile counts.
#include "due.lua"
local member = given.member
if redis.call('HGET', numbers, member) ~= in_text(given.claim) then return {} end
if given.claimMs then
  redis.call('ZADD', claimed, in_text(service_now + given.claimMs), member)
  return { member }
end
redis.call('ZREM', claimed, member)
redis.call('HDEL', numbers, member)
local at = given.at or (given.delayMs and now + given.delayMs)
local known = tonumber(redis.call('ZSCORE', due, member) or nil)
if known and (not at or known < at) then at = known end
if not at then
  note_backlog(member, nil)
  return { member }
end
redis.call('ZADD', due, in_text(at), member)
return wakeup(member, at)
