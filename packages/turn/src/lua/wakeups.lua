-- Included by the scripts of a turn's way: sends and completes wake-ups within the script, in BullMQ's keys. They are
-- left as `Queue.add` and a `Worker` of BullMQ leave them (wakeup-jobs.int.test.ts compares both), less its stream of
-- events, which no process reads, and the looks for what wake-ups never have: parents, limits, logs, other ids.

-- `rules`: options of the jobs, and their largest priority.
local function send_wakeups(prefix, account, wakeups, rules)
  for _, one in ipairs(wakeups) do
    local session, turn, backlog, at, depth = unpack(one)
    local queue, options = prefix .. ':turns' .. (depth > 0 and '-' .. depth or ''), rules.options
    local id, priority = turn .. '.' .. string.format('%.0f', at), math.min(math.max(backlog, 1), rules.maxPriority)
    options.jobId, options.priority = id, priority
    redis.call('HSET', queue .. ':' .. id, 'name', 'turn', 'data', cjson.encode({ tenantId = account, sessionId = session, turnId = turn }),
      'opts', cjson.encode(options), 'timestamp', at, 'delay', 0, 'priority', priority)
    local count = redis.call('INCR', queue .. ':pc')
    redis.call('ZADD', queue .. ':prioritized', priority * 0x100000000 + count % 0x100000000, id)
    redis.call('ZADD', queue .. ':marker', 0, '0')
  end
end

-- How many answered wake-ups there may be beyond those that are kept.
local trim_every = 16

-- `taken`: queue, id and token of the wake-up that the caller answers. Nothing is done when it is another's by now.
local function complete_wakeup(prefix, taken, wall, kept)
  local queue = prefix .. ':' .. taken.queue
  local job, completed = queue .. ':' .. taken.id, queue .. ':completed'
  if redis.call('GET', job .. ':lock') ~= taken.token then return end
  redis.call('DEL', job .. ':lock')
  redis.call('SREM', queue .. ':stalled', taken.id)
  if redis.call('LREM', queue .. ':active', -1, taken.id) == 0 then return end
  redis.call('ZADD', completed, wall, taken.id)
  redis.call('HSET', job, 'returnvalue', 'null', 'finishedOn', wall, 'atm', 1)
  if redis.call('ZCARD', completed) < kept + trim_every then return end
  local old = redis.call('ZRANGE', completed, 0, -(kept + 1))
  for index, id in ipairs(old) do old[index] = queue .. ':' .. id end
  redis.call('DEL', unpack(old))
  redis.call('ZREMRANGEBYRANK', completed, 0, -(kept + 1))
end
