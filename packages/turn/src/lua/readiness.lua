-- Returns whether this Redis has all accepted turns, and its run id.
-- KEYS  1 prefix with the hash tag
-- ARGV  1 as JSON: notesTime: for a reconciler, which notes the time
-- Returns {1 when it is ready else 0, run id}
-- Atomic because Redis may be another one for the next command.
#include "lanes.lua"
if cjson.decode(ARGV[1]).notesTime then note_time(KEYS[1]) end
local run = run_id()
return { is_ready(KEYS[1], run) and 1 or 0, run }
