-- Included by the scripts that write to a turn's stream or change its state. Live messages go to the process that
-- follows the turn since it was accepted (`reader`, its channel); once others have joined (`+`, streams/join.lua), or
-- where none does, they go to the turn's own channel.
local function publish(prefix, turn_id, reader, payload)
  local channel = string.match(reader or '', '^[^+]+')
  if channel then redis.call('PUBLISH', prefix .. ':live:' .. channel, turn_id .. ' ' .. payload) end
  if not channel or channel ~= reader then redis.call('PUBLISH', prefix .. ':live:' .. turn_id, payload) end
end

-- Tells who reads the tenant's feed of a turn, without waiting for them: the same JSON as `FeedChange` of the contract.
local function tell_feed(prefix, account, session, turn_id, state)
  local change = { kind = 'turn', id = turn_id, contact_id = session, status = state }
  redis.call('PUBLISH', prefix .. ':feed:' .. account, cjson.encode(change))
end
