import type { TestRedis } from '@concierge/testing';

/** The server's process id, from itself. */
export async function pidOfRedis(redis: TestRedis): Promise<number> {
  const client = redis.client();
  const facts = await client.info('server');
  client.disconnect();
  return Number(/^process_id:(?<pid>\d+)/mu.exec(facts)?.groups?.['pid'] ?? Number.NaN);
}
