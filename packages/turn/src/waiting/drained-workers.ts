import type { Log } from '@concierge/runtime';
import type { Worker } from 'bullmq';
import type { Redis } from 'ioredis';
import { keyOf } from '../keys.ts';
import { readWorkers, type ReportedWorker } from './workers.ts';

/** Each look of the worker renews its mark: only that of a worker that died goes by itself, after a week. */
const MARK_MS = 7 * 24 * 3_600_000;

/**
 * Has a worker take no new turns, or take them again, from its next report on; what it runs goes on. Drained, it stays
 * so until it is told otherwise or ends.
 * @returns the worker as it last reported; undefined when there is none with this id
 */
export async function setDrained(redis: Redis, id: string, isDrained: boolean): Promise<ReportedWorker | undefined> {
  const worker = (await readWorkers(redis)).find((one) => one.id === id);
  if (worker === undefined) return undefined;
  if (isDrained) await redis.set(keyOf.drained(id), '1', 'PX', MARK_MS);
  else await redis.del(keyOf.drained(id));
  return worker;
}

export interface DrainWatchOptions {
  readonly redis: Redis;
  /** Of the worker. */
  readonly id: string;
  readonly wakeups: readonly Worker[];
  readonly log: Log;
}

/** A worker's side: whether an operator has it take no turns. */
export class DrainWatch {
  readonly #options: DrainWatchOptions;
  #isDrained = false;

  constructor(options: DrainWatchOptions) {
    this.#options = options;
  }

  get isDrained(): boolean {
    return this.#isDrained;
  }

  /** Pauses or resumes what takes wake-ups, where that has changed; what runs goes on. */
  async look(): Promise<void> {
    const { redis, id, wakeups, log } = this.#options;
    const isDrained = (await redis.pexpire(keyOf.drained(id), MARK_MS)) === 1;
    if (isDrained === this.#isDrained) return;
    this.#isDrained = isDrained;
    log.info({ workerId: id, isDrained }, 'an operator changed whether it takes turns');
    for (const taking of wakeups) {
      if (isDrained) await taking.pause(true);
      else await taking.resume();
    }
  }

  /** The worker ends: nothing is left to be drained. */
  async forget(): Promise<void> {
    await this.#options.redis.del(keyOf.drained(this.#options.id));
  }
}
