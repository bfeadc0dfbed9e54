-- Keeps a receipt of a message that nobody has written down yet, for a while; of a tenant's messages the newest.
-- KEYS  1 early receipts of the message  2 the tenant's lists of them, the oldest first
-- ARGV  1 the receipt  2 at most so many of one message  3 how long, seconds  4 at most so many messages of the tenant
-- Returns 1
-- Atomic because what is counted must be what is there: whoever signs for a tenant may make up any number of messages.
if redis.call('RPUSH', KEYS[1], ARGV[1]) == 1 then redis.call('RPUSH', KEYS[2], KEYS[1]) end
redis.call('LTRIM', KEYS[1], -tonumber(ARGV[2]), -1)
redis.call('EXPIRE', KEYS[1], ARGV[3])
redis.call('EXPIRE', KEYS[2], ARGV[3])
while redis.call('LLEN', KEYS[2]) > tonumber(ARGV[4]) do
  redis.call('DEL', redis.call('LPOP', KEYS[2]))
end
return 1
