import type { Redis } from 'ioredis';
import { RedisScript } from '@concierge/runtime';
import { queuePrefix } from './keys.ts';

const script = new RedisScript(new URL('lua/take.lua', import.meta.url));

/**
 * Claims a task for a time, so that one of many processes does it; false when another has it. `keeps`: the caller has
 * it and prolongs the claim.
 */
export async function takeTask(redis: Redis, task: string, { forMs, keeps = false }: { forMs: number; keeps?: boolean }): Promise<boolean> {
  return (await script.run(redis, [queuePrefix, task], [forMs, keeps ? '1' : '0'])) === 1;
}
