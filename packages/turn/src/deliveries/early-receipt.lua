-- Keeps a receipt of a message that is not yet recorded as sent, for a while; only for the newest such messages of a
-- tenant.
-- KEYS  1 early receipts of the message  2 the tenant's lists of them, the oldest first
-- ARGV  1 as JSON: receipt, as text; receiptsMax: of one message; keptSeconds; messagesMax: of the tenant
-- Returns 1
-- Atomic because the count must match the content: a signer for a tenant may invent any number of messages.
local given = cjson.decode(ARGV[1])
if redis.call('RPUSH', KEYS[1], given.receipt) == 1 then redis.call('RPUSH', KEYS[2], KEYS[1]) end
redis.call('LTRIM', KEYS[1], -given.receiptsMax, -1)
redis.call('EXPIRE', KEYS[1], given.keptSeconds)
redis.call('EXPIRE', KEYS[2], given.keptSeconds)
while redis.call('LLEN', KEYS[2]) > given.messagesMax do
  redis.call('DEL', redis.call('LPOP', KEYS[2]))
end
return 1
