-- Included by the scripts that write to a turn's stream. An existing entry was written by this same call, which a
-- reconnected client has sent again. Any other error (a Redis without memory) is returned, so that the script ends with
-- it before it has changed anything.
local function add_entry(events, id, kind, data)
  local added = redis.pcall('XADD', events, id, 't', kind, 'd', data)
  if type(added) == 'table' and added.err and not string.find(added.err, 'equal or smaller', 1, true) then return added end
  return nil
end
