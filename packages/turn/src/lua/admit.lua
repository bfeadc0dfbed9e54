-- Included by the scripts that may free a place in a tenant's share.
-- All keys carry one hash tag (KEYS[1] ends in it), so every name built from it lives in the same slot of a Redis Cluster.

local function now_ms()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

-- A doorbell is about to be rung for this lane: until it is answered the sweeper looks again, a little later each time.
local function ring(prefix, account, session, now, first_wait)
  local held = prefix .. ':held:' .. account .. '/' .. session
  local rung = redis.call('HINCRBY', held, 'rung', 1)
  local wait = math.min(first_wait * 2 ^ math.min(rung - 1, 10), 30000)
  redis.call('ZADD', prefix .. ':due', now + wait, account .. '/' .. session)
  local head = redis.call('LINDEX', prefix .. ':lane:' .. account .. '/' .. session, 0)
  return { session, head or '', redis.call('SCARD', prefix .. ':admitted:' .. account), now }
end

-- Fills the tenant's share from its line, oldest first. Answers a list of rings.
local function admit(prefix, account, now, first_wait)
  local admitted, line = prefix .. ':admitted:' .. account, prefix .. ':line:' .. account
  local share = tonumber(redis.call('GET', prefix .. ':share') or '16')
  local rings = {}
  while redis.call('SCARD', admitted) < share do
    local session = redis.call('LPOP', line)
    if not session then break end
    if redis.call('SADD', admitted, session) == 1 then
      rings[#rings + 1] = ring(prefix, account, session, now, first_wait)
    end
  end
  return rings
end
