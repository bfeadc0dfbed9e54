-- Records when members are to be processed. A member that is due sooner stays so.
-- KEYS  1 prefix with the hash tag  2 the due set
-- ARGV  1 JSON, as in due.lua: members, a list of {member, delayMs, or at for a time before every clock}; onlyNew, when
--       members in the set stay as they are; flag, a key that gets the run id with them
-- Returns a list of {member, time, ms until then, backlog}: the wake-ups to send
-- Atomic because another process may claim or add a member meanwhile, and because a Redis that is emptied has all
-- members or no flag.
#include "due.lua"
local wakeups = {}
for _, item in ipairs(given.members) do
  local member, known, is_taken = item.member, redis.call('ZSCORE', due, item.member), is_claimed(item.member)
  local at = item.at or now + item.delayMs
  local is_sooner = known and tonumber(known) > now and tonumber(known) <= at
  if not is_sooner and not (given.onlyNew and known) then
    if known then at = math.min(at, tonumber(known)) end
    redis.call('ZADD', due, in_text(at), member)
    if not is_taken then wakeups[#wakeups + 1] = wakeup(member, at) end
  end
end
if given.flag then redis.call('SET', given.flag, run_id()) end
return wakeups
