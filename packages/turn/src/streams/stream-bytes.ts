import type { Redis } from 'ioredis';
import { AppError, limits, type TenantSettings } from '@concierge/contract';
import { findSlot, type Log } from '@concierge/runtime';
import type { TenantScope } from '@concierge/tenant';
import { keyOf } from '../keys.ts';

/** Streams expire by themselves; their bytes are counted in periods of this length, which expire too. */
const PORTION_SECONDS = 600;
const PORTIONS = Math.ceil(limits.streamTtlSeconds / PORTION_SECONDS) + 1;
/** The writes of many turns are counted together at this interval. */
const COUNT_EVERY_MS = 1000;
/** The maximum age of a sum that decides about a message. */
const SUM_AGE_MS = 2000;

/** The maximum number of tenants whose sums are cached. */
const SUMS_MAX = 10_000;
/** The quota is counted by the hour: asking again sooner is of no use. */
const QUOTA_RETRY_SECONDS = 600;

interface Sum {
  bytes: number;
  askedAtMs: number;
}

/**
 * How much of Redis' memory the streams of a tenant take. Redis holds them for an hour and evicts nothing, for all
 * tenants alike. Counted apart from the writes, and asked apart from acceptance: neither waits for it, so that the
 * bound is exceeded by what is written within seconds.
 */
export class StreamBytes {
  readonly #redis: Redis;
  readonly #log: Log;
  readonly #uncounted = new Map<string, number>();
  readonly #sums = new Map<string, Sum>();
  #timer: NodeJS.Timeout | undefined;

  constructor(redis: Redis, log: Log) {
    this.#redis = redis;
    this.#log = log;
  }

  add(tenantId: string, bytes: number): void {
    this.#uncounted.set(tenantId, (this.#uncounted.get(tenantId) ?? 0) + bytes);
    this.#timer ??= setTimeout(() => void this.flush(), COUNT_EVERY_MS);
  }

  /**
   * Refuses messages of a tenant whose turns fill the memory that all tenants have together, before anything is
   * accepted. @throws AppError `rate_limited`
   */
  refuseWhenFull({ tenantId }: Pick<TenantScope, 'tenantId'>, { limits: own }: Pick<TenantSettings, 'limits'>): void {
    const most = own?.streamCharactersPerHour ?? limits.streamsMaxCharacters;
    if (this.countBytes(tenantId) < most) return;
    throw new AppError(
      'rate_limited',
      `The turns of this tenant have written ${String(most)} characters within the last hour, as many as it may.`,
      { retryAfterSeconds: QUOTA_RETRY_SECONDS },
    );
  }

  /** The bytes of the last hour, as far as known; an unknown sum is being fetched. */
  countBytes(tenantId: string): number {
    const known = this.#sums.get(tenantId) ?? { bytes: 0, askedAtMs: -Infinity };
    const nowMs = performance.now();
    if (nowMs - known.askedAtMs > SUM_AGE_MS) {
      known.askedAtMs = nowMs;
      if (this.#sums.size >= SUMS_MAX) this.#sums.clear();
      this.#sums.set(tenantId, known);
      void this.#ask(tenantId, known);
    }
    return known.bytes;
  }

  /** Writes the counts that are not written yet. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const counted = [...this.#uncounted];
    this.#uncounted.clear();
    const portion = portionNow();
    const bySlot = Map.groupBy(counted, ([tenantId]) => findSlot(this.#redis, tenantId));
    const counting = Array.from(bySlot, async ([slot, own]) => {
      const commands = slot.pipeline();
      for (const [tenantId, bytes] of own) {
        const key = keyOf.streamBytes(tenantId, portion);
        commands.incrby(key, bytes).expire(key, PORTIONS * PORTION_SECONDS);
      }
      await commands.exec().catch((error: unknown) => {
        this.#log.debug({ err: error }, 'the bytes of streams were not counted');
      });
    });
    await Promise.all(counting);
  }

  async #ask(tenantId: string, sum: Sum): Promise<void> {
    const newest = portionNow();
    const keys = Array.from({ length: PORTIONS }, (_, index) => keyOf.streamBytes(tenantId, newest - index));
    try {
      const portions = await findSlot(this.#redis, tenantId).mget(keys);
      sum.bytes = portions.reduce((bytes, portion) => bytes + Number(portion ?? 0), 0);
    } catch (error) {
      this.#log.debug({ err: error, tenantId }, 'the bytes of streams are not known');
    }
  }
}

function portionNow(): number {
  return Math.floor(Date.now() / 1000 / PORTION_SECONDS);
}
