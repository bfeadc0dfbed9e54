-- Included by the scripts that ask whether this Redis has everything: one that was started again, or took over from
-- another, has another run id and may have lost its last second.

-- A Redis that does not expose its run id has none here: then only an empty one is noticed.
local function run_id()
  local info = redis.pcall('INFO', 'server')
  if type(info) ~= 'string' then return '' end
  local _, at = string.find(info, 'run_id:', 1, true)
  return at and string.sub(info, at + 1, at + 40) or ''
end
