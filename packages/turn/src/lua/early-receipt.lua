-- Keeps a receipt of a message that is not yet recorded as sent, for a while; only for the newest such messages of a
-- tenant.
-- KEYS  1 early receipts of the message  2 the tenant's lists of them, the oldest first
-- ARGV  1 the receipt  2 at most so many of one message  3 how long, seconds  4 at most so many messages of the tenant
-- Returns 1
-- Atomic because the count must match the content: a signer for a tenant may invent any number of messages.
if redis.call('RPUSH', KEYS[1], ARGV[1]) == 1 then redis.call('RPUSH', KEYS[2], KEYS[1]) end
redis.call('LTRIM', KEYS[1], -tonumber(ARGV[2]), -1)
redis.call('EXPIRE', KEYS[1], ARGV[3])
redis.call('EXPIRE', KEYS[2], ARGV[3])
while redis.call('LLEN', KEYS[2]) > tonumber(ARGV[4]) do
  redis.call('DEL', redis.call('LPOP', KEYS[2]))
end
return 1
