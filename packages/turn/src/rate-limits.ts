import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import { z } from 'zod';
import { RedisScript, findSlot } from '@concierge/runtime';
import { keyOf } from './keys.ts';

const script = new RedisScript(new URL('lua/rate-limit.lua', import.meta.url));
const Reply = z.tuple([z.number(), z.number(), z.number()]);

export interface RateLimitState {
  readonly allowed: boolean;
  readonly remaining: number;
  /** Until the oldest counted request leaves the window. */
  readonly resetSeconds: number;
}

export interface RateWindowSize {
  readonly limit: number;
  readonly windowSeconds: number;
  /** What this one takes of the limit, above 0, where the window counts weights: bytes, say. Else each takes one. */
  readonly weight?: number | undefined;
}

/** Requests per rolling window, exact across gateways: one script counts them all. */
export class RateLimits {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /** `name`: a tenant's id, or one that goes on behind it with a colon, for another window of the tenant. */
  async take(name: string, { limit, windowSeconds, weight }: RateWindowSize): Promise<RateLimitState> {
    const [tenantId = name] = name.split(':', 1);
    const slot = findSlot(this.#redis, tenantId);
    const given = JSON.stringify({ limit, windowMs: windowSeconds * 1000, request: randomUUID(), weight });
    const [allowed, remaining, waitMs] = Reply.parse(await script.run(slot, [keyOf.requests(name)], [given]));
    return { allowed: allowed === 1, remaining: Math.max(0, remaining), resetSeconds: Math.max(1, Math.ceil(waitMs / 1000)) };
  }
}
