import type { Log, connectRedis } from '@concierge/runtime';
import type { Sandboxes } from '@concierge/sandbox';
import { Reconciler, keyOf } from '@concierge/turn';
import type { WorkerRunDirectories } from './worker-run-directories.ts';

const REAP_EVERY_MS = 10_000;
/** A worker without a heartbeat for this long is silent. */
const SILENCE_MS = 10_000;
/**
 * How long a worker must have been silent in every look before it counts as gone: a Redis that came back empty has no
 * heartbeats yet, and every living worker sends its own again within seconds.
 */
const GONE_AFTER_MS = 15_000;
/** The longest gap between two looks. In a longer one anything may have happened: earlier notes count no more. */
const LOOK_GAP_MAX_MS = 30_000;

export interface SandboxReaperOptions {
  readonly sandboxes: Pick<Sandboxes, 'reap'> | undefined;
  readonly folders: Pick<WorkerRunDirectories, 'sweep'>;
  readonly liveness: Pick<WorkerLiveness, 'isAlive'>;
  readonly log: Log;
}

/**
 * Removes the sandboxes and folders of killed workers. It runs in every worker from its start on.
 */
export class SandboxReaper extends Reconciler {
  readonly name = 'sandbox reaper';
  readonly #options: SandboxReaperOptions;

  constructor(options: SandboxReaperOptions) {
    super({ everyMs: REAP_EVERY_MS, log: options.log });
    this.#options = options;
  }

  override async reconcile(): Promise<void> {
    const { sandboxes, folders, liveness, log } = this.#options;
    const isAlive = async (workerId: string): Promise<boolean> => await liveness.isAlive(workerId);
    // The folders come first: an engine that is away must not keep them.
    const swept = await folders.sweep(isAlive);
    const removed = (await sandboxes?.reap(isAlive)) ?? 0;
    if (removed + swept > 0) log.info({ sandboxes: removed, folders: swept }, 'cleared away what workers that are gone had left');
  }
}

interface WorkerLivenessOptions {
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
