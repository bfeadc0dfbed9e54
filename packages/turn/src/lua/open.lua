-- Every inbox has been laid into lanes: from now on turns run.
-- KEYS  1 prefix with the hash tag
-- ARGV  1 first wait of the sweeper, ms
-- Returns a list of {account id, ring}
-- Atomic because an acceptance in between must either be in a lane that is opened here, or see the mark.
#include "admit.lua"
local prefix = KEYS[1]
local now = now_ms()
redis.call('SET', prefix .. ':laid', now)
local found = {}
for _, pool in ipairs(redis.call('SMEMBERS', prefix .. ':unopened')) do
  for _, one in ipairs(admit(prefix, pool, now, tonumber(ARGV[1]))) do found[#found + 1] = { account_of(pool), one } end
end
redis.call('DEL', prefix .. ':unopened')
return found
