import type { Worker } from 'bullmq';
import { background, duringActivity, type Log } from '@concierge/runtime';
import type { DueClaim, DueKey, DueQueue } from './due-queue.ts';

const KEEP_EVERY_MS = 3000;
const POLLED_AT_ONCE = 32;
/** The limit of one poll; the next poll continues. */
const ROUNDS_PER_POLL = 50;

/**
 * Does one piece of due work. The caller holds and keeps the claim meanwhile. The signal aborts when the worker must
 * stop at once.
 * @returns how long until the next time, null when nothing is left to do
 */
export type DueHandler = (claim: DueClaim, signal: AbortSignal) => Promise<number | null>;

export interface DueWorkerOptions {
  readonly queue: DueQueue;
  readonly handle: DueHandler;
  /** Members that a woken worker processes at the same time. */
  readonly concurrency: number;
  /** The wait after a failure of the disk or of Redis. */
  readonly afterFailureMs: number;
  readonly log: Log;
}

/** Processes due members: the member that a wake-up names or, without wake-ups, the members that a poll finds. */
export class DueWorker {
  readonly name: string;
  readonly #options: DueWorkerOptions;
  readonly #wakeups: Worker | undefined;
  readonly #held = new Set<DueClaim>();
  readonly #stop = new AbortController();
  #pulse: NodeJS.Timeout | undefined;

  constructor(options: DueWorkerOptions) {
    const { queue, concurrency } = options;
    this.#options = options;
    this.name = `worker of ${queue.kind}`;
    this.#wakeups = queue.openWorker(concurrency, async (key) => this.look(key));
  }

  start(): void {
    const { log } = this.#options;
    this.#pulse = setInterval(() => background(this.#keep(), log), KEEP_EVERY_MS);
    if (this.#wakeups !== undefined) background(this.#wakeups.run(), log);
  }

  /** Running work finishes; after the grace its signal aborts. */
  async stop(graceMs: number): Promise<void> {
    const timer = setTimeout(() => this.#stop.abort(new Error('the worker stops')), graceMs);
    await this.#wakeups?.close();
    clearTimeout(timer);
    clearInterval(this.#pulse);
  }

  /** Answers one wake-up. */
  async look(key: DueKey): Promise<void> {
    const claim = await this.#options.queue.claimOne(key);
    if (claim !== undefined) await this.#handle(claim);
  }

  /** Processes everything that is due, once. */
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
      // The work continues in another process.
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
