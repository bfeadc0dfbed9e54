import type { Worker } from 'bullmq';
import type { Redis } from 'ioredis';
import { background, duringActivity, type Log } from '@concierge/runtime';
import { keptForDashboards, openWakeupWorker } from '../lanes/wakeup-jobs.ts';
import { DueJob, type DueClaim, type DueKey, type DueQueue } from './due-queue.ts';

const KEEP_EVERY_MS = 3000;
const POLLED_AT_ONCE = 32;
/** Of one poll: the next one goes on. */
const ROUNDS_PER_POLL = 50;

/**
 * Does one piece of due work. The caller has the claim, and keeps it meanwhile. The signal is aborted when the worker must stop at once.
 * @returns how long until it is to be looked at again, null when nothing is left to come
 */
export type DueHandler = (claim: DueClaim, signal: AbortSignal) => Promise<number | null>;

export interface DueWorkerOptions {
  readonly redis: Redis;
  readonly queue: DueQueue;
  readonly handle: DueHandler;
  /** Members that this worker looks at at once, when it is woken. */
  readonly concurrency: number;
  /** A disk or a Redis that fails is given so long. */
  readonly afterFailureMs: number;
  readonly log: Log;
}

/** Looks at members that are due: those that a wake-up names, or, where nobody wakes it, those that a poll finds. */
export class DueWorker {
  readonly name: string;
  readonly #options: DueWorkerOptions;
  readonly #wakeups: Worker | undefined;
  readonly #held = new Set<DueClaim>();
  readonly #stop = new AbortController();
  #pulse: NodeJS.Timeout | undefined;

  constructor(options: DueWorkerOptions) {
    const { redis, queue, concurrency, log } = options;
    this.#options = options;
    this.name = `worker of ${queue.kind}`;
    if (queue.queues.length === 0) return;
    const answer = async (key: DueKey): Promise<void> => this.look(key);
    this.#wakeups = openWakeupWorker(queue.kind, { redis, concurrency, log, kept: keptForDashboards, schema: DueJob, answer });
  }

  start(): void {
    const { log } = this.#options;
    this.#pulse = setInterval(() => background(this.#keep(), log), KEEP_EVERY_MS);
    if (this.#wakeups !== undefined) background(this.#wakeups.run(), log);
  }

  /** What is being done is finished; after the grace it is told to stop at once. */
  async stop(graceMs: number): Promise<void> {
    const timer = setTimeout(() => this.#stop.abort(new Error('the worker stops')), graceMs);
    await this.#wakeups?.close();
    clearTimeout(timer);
    clearInterval(this.#pulse);
  }

  /** One wake-up. */
  async look(key: DueKey): Promise<void> {
    const claim = await this.#options.queue.claimOne(key);
    if (claim !== undefined) await this.#handle(claim);
  }

  /** Everything that is due, once. */
  async poll(): Promise<void> {
    for (let round = 0; round < ROUNDS_PER_POLL && !this.#stop.signal.aborted; round += 1) {
      const { claims } = await this.#options.queue.claim(POLLED_AT_ONCE);
      await Promise.all(claims.map(async (claim) => this.#handle(claim)));
      if (claims.length < POLLED_AT_ONCE) return;
    }
  }

  async #handle(claim: DueClaim): Promise<void> {
    const { queue, handle, afterFailureMs, log } = this.#options;
    const { tenantId, name } = claim;
    const facts = { kind: queue.kind, tenantId, name };
    this.#held.add(claim);
    const delayMs = await duringActivity(facts, async () => handle(claim, this.#stop.signal)).catch((error: unknown) => {
      // It goes on elsewhere.
      if (this.#stop.signal.aborted) return 0;
      log.error({ ...facts, err: error }, 'due work failed');
      return afterFailureMs;
    });
    this.#held.delete(claim);
    const isOwn = await queue.plan(claim, delayMs);
    // Redis was emptied, perhaps: what is left to come is not left to the reconciler.
    if (!isOwn && delayMs !== null) await queue.add([{ tenantId, name, delayMs }]);
  }

  async #keep(): Promise<void> {
    const { queue, log } = this.#options;
    const keeping = [...this.#held].map(async (claim) => {
      const { tenantId, name } = claim;
      if (!(await queue.keep(claim)) && this.#held.has(claim))
        log.warn({ kind: queue.kind, tenantId, name }, 'a claim of due work was lost');
    });
    await Promise.all(keeping);
  }
}
