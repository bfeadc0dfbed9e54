-- Included by the scripts that must know whether this Redis has all that was accepted. `:ready` has the run id of the
-- Redis in which the lanes were restored from the inboxes. It is missing in a Redis that came back empty, and is
-- another's in one that was started again and may have lost its last second: until the inboxes have been scanned
-- (open.lua), nothing starts.

-- A Redis that does not expose its run id has none here: then only an empty one is noticed.
local function run_id()
  local info = redis.pcall('INFO', 'server')
  if type(info) ~= 'string' then return '' end
  local _, at = string.find(info, 'run_id:', 1, true)
  return at and string.sub(info, at + 1, at + 40) or ''
end

local function is_ready(prefix, id)
  local enqueued = redis.call('GET', prefix .. ':ready')
  return enqueued ~= false and enqueued == (id or run_id())
end
