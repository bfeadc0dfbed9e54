import type { Redis } from 'ioredis';
import { RedisScript } from '@concierge/runtime';
import { queuePrefix } from '../keys.ts';

const script = new RedisScript(new URL('../lua/take.lua', import.meta.url));

/** Takes a task, for so long, that one of many processes does; false when another has it. `keeps`: it is the caller's, for longer. */
export async function takeTask(redis: Redis, task: string, { forMs, keeps = false }: { forMs: number; keeps?: boolean }): Promise<boolean> {
  return (await script.run(redis, [queuePrefix, task], [forMs, keeps ? '1' : '0'])) === 1;
}
