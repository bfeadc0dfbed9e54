import type { connectRedis } from '@concierge/runtime';
import { keyOf } from '@concierge/turn';

/** A worker without a heartbeat for this long is silent. */
const SILENCE_MS = 10_000;
/**
 * How long a worker must have been silent in every look before it counts as gone: a Redis that came back empty has no
 * heartbeats yet, and every living worker sends its own again within seconds.
 */
const GONE_AFTER_MS = 15_000;
/** The longest gap between two looks. In a longer one anything may have happened: earlier notes count no more. */
const LOOK_GAP_MAX_MS = 30_000;

export interface WorkerLivenessOptions {
  readonly redis: Pick<ReturnType<typeof connectRedis>, 'time' | 'zscore'>;
  readonly ownId: () => string;
  /** Milliseconds that only ever rise. */
  readonly now: () => number;
}

/** Which workers are gone for good, by their own heartbeat in Redis. In doubt a worker lives. */
export class WorkerLiveness {
  readonly #options: WorkerLivenessOptions;
  readonly #silentSince = new Map<string, number>();
  #lastLookAt = -Infinity;

  constructor(options: WorkerLivenessOptions) {
    this.#options = options;
  }

  /** Call it again and again. @throws what Redis throws; all notes are then forgotten */
  async isAlive(workerId: string): Promise<boolean> {
    const isHeard = workerId === this.#options.ownId() || (await this.#isHeard(workerId));
    // The time of the answer counts, not that of the question: between the two Redis may have been away for long.
    const now = this.#options.now();
    if (now - this.#lastLookAt > LOOK_GAP_MAX_MS) this.#silentSince.clear();
    this.#lastLookAt = now;
    if (isHeard) {
      this.#silentSince.delete(workerId);
      return true;
    }
    const since = this.#silentSince.get(workerId) ?? now;
    this.#silentSince.set(workerId, since);
    return now - since < GONE_AFTER_MS;
  }

  async #isHeard(workerId: string): Promise<boolean> {
    const { redis } = this.#options;
    try {
      const lastHeard = await redis.zscore(keyOf.workers, workerId);
      if (lastHeard === null) return false;
      // Redis' own clock: the workers' heartbeats were made with it.
      const [seconds] = await redis.time();
      return Number(seconds) * 1000 - Number(lastHeard) < SILENCE_MS;
    } catch (error) {
      this.#silentSince.clear();
      throw error;
    }
  }
}
