-- Whether all members were added to this Redis since it was started.
-- KEYS  1 the flag that due-add.lua has set
-- Returns 1 or 0
-- A script because the run id has to be that of the server which has the key.
#include "../lua/clock.lua"
return redis.call('GET', KEYS[1]) == run_id() and 1 or 0
