import { randomUUID } from 'node:crypto';
import type { Worker } from 'bullmq';
import type { Redis } from 'ioredis';
import { backoffMs, limits } from '@concierge/contract';
import { background, duringActivity, eventLoopStallMs, failpoint, findSlot, listSlots, waitForAnswer } from '@concierge/runtime';
import { depths, takeWakeups, type Wakeup, type WakeupQueue } from '../lanes/wakeup-queue.ts';
import { keyOf, laneMember } from '../keys.ts';
import { RENEW_EVERY_MS, type Lanes, type Lease, type WokenLane } from '../lanes/lanes.ts';
import { LeaseLost, TurnCancelled, TurnTimedOut, WorkerDraining } from './turn-run.ts';
import type { TurnCounts } from '../waiting/turn-counts.ts';
import { DrainWatch } from '../waiting/drained-workers.ts';
import type { WorkerReport } from '../waiting/workers.ts';
import { StreamBytes } from '../streams/stream-bytes.ts';
import { TurnAttempt, type AttemptOptions } from './turn-attempt.ts';

const BEAT_EVERY_MS = 2000;
const LANES_PER_SWEEP = 100;

export interface TurnWorkerOptions extends Pick<AttemptOptions, 'redis' | 'tenants' | 'handlers' | 'log' | 'onFenced'> {
  readonly queue: { readonly lanes: Lanes; readonly wakeupQueue: WakeupQueue };
  /** A separate connection: it subscribes to cancels. */
  readonly subscriber: Redis;
  readonly capacity: WorkerCapacity;
  readonly about: WorkerFacts;
}

/** The facts that a worker publishes with its heartbeat. */
export interface WorkerFacts {
  /** An id from `newId`; generated when omitted. */
  readonly id?: string;
  readonly version: string;
  /** Whether the built-in demo model answers. */
  readonly isDemo?: boolean;
  /** For operators (`WorkerReport`): the default model, and what of the providers and the sandbox cannot be used. */
  readonly report?: Pick<WorkerReport, 'model' | 'unusableProviders' | 'sandbox'>;
  /** What it has done since it started. */
  readonly counts?: () => TurnCounts;
}

export interface WorkerCapacity {
  /**
   * Turns this worker runs at once, at each depth: a turn keeps its slot while it waits for the turns it started, which
   * need slots of the next depth only.
   */
  readonly concurrency: number;
  /** The maximum of these for one tenant. */
  readonly tenantShare: number;
}

type DepthLane = Required<WokenLane>;

interface RunningTurn {
  readonly lease: Lease;
  readonly stop: AbortController;
}

/**
 * Answers wake-ups: takes a lane's lease, runs its head, announces the end. Renews the leases it holds and sends
 * heartbeats.
 */
export class TurnWorker {
  readonly id: string;
  readonly #options: TurnWorkerOptions;
  readonly #attempts: Omit<AttemptOptions, 'redis' | 'worker'>;
  readonly #streamBytes: StreamBytes;
  readonly #gate = new StartGate(() => this.#wakeNextSuspect());
  /** Lanes whose head must run alone and waits while another such head runs. */
  readonly #suspects = new Map<string, Wakeup>();
  readonly #running = new Map<string, RunningTurn>();
  readonly #wakeups: readonly Worker[];
  readonly #drainWatch: DrainWatch;
  readonly #startedAt = new Date().toISOString();
  #pulse: NodeJS.Timeout | undefined;
  #renewal: NodeJS.Timeout | undefined;
  #draining = false;
  #isHandingOn = false;
  #graceOver = false;

  constructor(options: TurnWorkerOptions) {
    this.id = options.about.id ?? TurnWorker.newId();
    this.#options = options;
    this.#streamBytes = new StreamBytes(options.redis, options.log);
    const { redis, log, queue, tenants, handlers, capacity, onFenced } = options;
    this.#attempts = { ...queue, tenants, handlers, onFenced, log };
    const { concurrency } = capacity;
    this.#wakeups = depths.map((depth) =>
      takeWakeups({ redis, depth, concurrency, log, answer: async (lane, wakeup) => await this.#answer({ ...lane, depth, wakeup }) }),
    );
    this.#drainWatch = new DrainWatch({ redis, id: this.id, wakeups: this.#wakeups, log });
    for (const slot of listSlots(options.subscriber)) {
      slot.on('message', (_channel: string, turnId: string) => {
        this.#running.get(turnId)?.stop.abort(new TurnCancelled('cancelled'));
      });
    }
  }

  /** For parts that need the id before the worker exists. */
  static newId(): string {
    return `w_${randomUUID()}`;
  }

  get running(): number {
    return this.#running.size;
  }

  async start(): Promise<void> {
    const [first, ...others] = listSlots(this.#options.subscriber).map(async (slot) => slot.subscribe(keyOf.cancel));
    for (const subscribing of others) background(subscribing, this.#options.log);
    await first;
    await this.#beat();
    // A renewal waits for no other: one that fails or hangs delays none.
    this.#renewal = setInterval(() => this.#renewAll(), RENEW_EVERY_MS);
    this.#pulse = setInterval(() => background(this.#beat(), this.#options.log), BEAT_EVERY_MS);
    for (const wakeups of this.#wakeups) background(wakeups.run(), this.#options.log);
  }

  /**
   * No new turns. Running ones get the grace; in its second half those that come to another model call go on in another
   * worker. After it the others do, too, after their last finished step: a call that is cut is made again.
   */
  async stop(graceMs: number): Promise<void> {
    this.#draining = true;
    await failpoint('worker.draining');
    const closed = Promise.all(this.#wakeups.map(async (wakeups) => await wakeups.close()));
    const handOn = setTimeout(() => {
      this.#isHandingOn = true;
      this.#options.log.info({ running: this.#running.size }, 'turns go on elsewhere at their next model call');
    }, graceMs / 2);
    const timer = setTimeout(() => {
      this.#graceOver = true;
      for (const { stop } of this.#running.values()) stop.abort(new WorkerDraining('the worker stops'));
    }, graceMs);
    await closed;
    clearTimeout(handOn);
    clearTimeout(timer);
    clearInterval(this.#pulse);
    clearInterval(this.#renewal);
    await this.#streamBytes.flush();
    await this.#beat({ leaving: true }).catch(() => undefined);
    const [first, ...others] = listSlots(this.#options.subscriber);
    for (const slot of others) slot.disconnect();
    await first?.quit().catch(() => undefined);
  }

  async #answer(lane: DepthLane): Promise<void> {
    if (this.#drainWatch.isDrained) {
      // It was taken at the moment of the pause: another worker answers it.
      const [turnId = ''] = lane.wakeup.id.split('.');
      await this.#options.queue.wakeupQueue.wake([{ ...lane, turnId, backlog: 1, at: Date.now() }]);
      return;
    }
    while (this.#gate.isClosed) await this.#gate.opened();
    const { lanes, wakeupQueue } = this.#options.queue;
    const leave = this.#gate.enter();
    try {
      const answer = await lanes.lease(lane, this.id);
      if (answer.kind === 'idle') await wakeupQueue.wake(answer.wakeups);
      if (answer.kind === 'leased') await this.#run(answer.lease, leave);
      if (answer.kind !== 'alone') return;
      leave();
      await this.#answerAlone(lane, answer);
    } finally {
      leave();
    }
  }

  /** Runs suspects one after the other: the one that is alone when the process dies has killed it. */
  async #answerAlone(lane: DepthLane, { turnId, voids }: { readonly turnId: string; readonly voids: number }): Promise<void> {
    if (this.#draining) return;
    if (this.#gate.isClosed) {
      this.#suspects.set(laneMember(lane), { ...lane, turnId, backlog: 1, at: Date.now() });
      return;
    }
    const { lanes, wakeupQueue } = this.#options.queue;
    await this.#gate.runAlone(voids, async (proven) => {
      const answer = await lanes.lease(lane, this.id, { alone: true });
      if (answer.kind === 'idle') await wakeupQueue.wake(answer.wakeups);
      // A turn that has crashed often in spite of its steps blocks other starts for the whole time.
      if (answer.kind === 'leased') await this.#run(answer.lease, answer.lease.isLastStart ? () => undefined : proven);
    });
  }

  #wakeNextSuspect(): void {
    for (const [member, next] of this.#suspects) {
      this.#suspects.delete(member);
      background(this.#options.queue.wakeupQueue.wake([{ ...next, at: Date.now() }]), this.#options.log);
      return;
    }
  }

  async #run(lease: Lease, onProgress: () => void): Promise<void> {
    const stop = new AbortController();
    const timeout = setTimeout(
      () => {
        stop.abort(new TurnTimedOut('the turn took too long'));
      },
      Math.max(1, limits.turnTimeoutMs - lease.ageMs),
    );
    const running = { lease, stop };
    // The same worker can get the lease again while its old attempt still waits for something: the old attempt has lost
    // its lease.
    this.#running.get(lease.turnId)?.stop.abort(new LeaseLost('this worker has a newer lease'));
    this.#running.set(lease.turnId, running);
    // The wake-up was being answered when the grace ended.
    if (this.#graceOver) stop.abort(new WorkerDraining('the worker stops'));
    try {
      const { turnId, tenantId } = lease;
      const redis = findSlot(this.#options.redis, tenantId);
      const isHandingOn = (): boolean => this.#isHandingOn;
      const worker = { turnsRunning: () => this.#running.size, isHandingOn, onProgress, streamBytes: this.#streamBytes };
      await duringActivity({ turnId, tenantId }, async () => new TurnAttempt({ ...this.#attempts, redis, worker }, lease, stop).run());
    } finally {
      clearTimeout(timeout);
      if (this.#running.get(lease.turnId) === running) {
        this.#running.delete(lease.turnId);
        if (stop.signal.reason instanceof LeaseLost) background(this.#options.queue.lanes.outlive(lease, this.id), this.#options.log);
      }
    }
  }

  #renewAll(): void {
    const { queue, log } = this.#options;
    const bySlot = queue.lanes.bySlot([...this.#running.values()].map(({ lease }) => lease));
    for (const [slot, leases] of bySlot) background(this.#renew(slot, leases), log);
  }

  async #renew(slot: Redis, leases: readonly Lease[]): Promise<void> {
    const { lanes, wakeupQueue } = this.#options.queue;
    const { lost, cancelled, isLaneDue } = await lanes.renew(leases);
    for (const lease of lost) {
      const running = this.#running.get(lease.turnId);
      // A late answer is about the lease that it names: the turn may have a newer one.
      if (running?.lease === lease) running.stop.abort(new LeaseLost('the lease was not renewed in time'));
    }
    for (const { turnId } of cancelled) this.#running.get(turnId)?.stop.abort(new TurnCancelled('cancelled'));
    // Before a reconciler comes to it: readers of a dead worker's turns wait.
    if (isLaneDue) await wakeupQueue.wake(await lanes.sweep(LANES_PER_SWEEP, slot));
  }

  async #beat({ leaving = false } = {}): Promise<void> {
    const { queue, capacity, about } = this.#options;
    await (leaving ? this.#drainWatch.forget() : this.#drainWatch.look());
    const { version, isDemo = false, report, counts } = about;
    const { concurrency, tenantShare } = capacity;
    const turns = [...this.#running.keys()];
    const stallMs = eventLoopStallMs();
    const { isDrained } = this.#drainWatch;
    const state = { startedAt: this.#startedAt, draining: this.#draining || isDrained, isDrained, stallMs, isDemo, turns };
    const facts = { version, concurrency, ...state, ...report, counts: counts?.() };
    await queue.lanes.heartbeat({ id: this.id, share: tenantShare, facts, leaving });
  }
}

/**
 * How long a suspect waits for the others to finish a step, and has to finish one of its own; twice as long after each
 * death that could not be attributed. Time in which this process ran: it stands still for all of them.
 */
const ALONE_MS = 10_000;
const ALONE_MAX_MS = 64 * ALONE_MS;

/**
 * When turns may start in a process. A turn that has not finished a step since it was started here is *unproven*: when
 * the process dies, that turn may be the cause. A suspect, whose workers have died twice, starts when no other turn is
 * unproven, and no turn starts beside it until it has finished a step or used its time: a death can then be attributed
 * to it (docs/decisions/0007-crash-starts.md). open → closed (a suspect waits for the others, then runs) → open.
 */
class StartGate {
  readonly #onOpen: () => void;
  readonly #unproven = new Set<object>();
  #closed: PromiseWithResolvers<void> | undefined;
  #quiet: (() => void) | undefined;

  /** `onOpen` is called each time a suspect has had its time alone. */
  constructor(onOpen: () => void) {
    this.#onOpen = onOpen;
  }

  get isClosed(): boolean {
    return this.#closed !== undefined;
  }

  /** Resolves when the gate opens; it may be closed again by then. */
  async opened(): Promise<void> {
    await this.#closed?.promise;
  }

  /**
   * Call before a lease is requested.
   * @returns a function to call when the turn is proven, has ended, or was not leased
   */
  enter(): () => void {
    const token = {};
    this.#unproven.add(token);
    return () => {
      if (this.#unproven.delete(token) && this.#unproven.size === 0) this.#quiet?.();
    };
  }

  /**
   * Closes the gate, waits for the others, and runs a suspect. The gate opens when the suspect calls `proven`, when it
   * has ended, and when its time is over. Call it while the gate is open.
   * @param voids deaths that could not be attributed so far
   */
  async runAlone(voids: number, run: (proven: () => void) => Promise<void>): Promise<void> {
    const aloneMs = backoffMs(voids + 1, { firstMs: ALONE_MS, maxMs: ALONE_MAX_MS });
    await this.#close(aloneMs);
    const leave = this.enter();
    let isAlone = true;
    const endAlone = (): void => {
      if (isAlone) this.#open();
      isAlone = false;
    };
    void waitForAnswer(aloneMs).then(endAlone);
    const proven = (): void => {
      leave();
      endAlone();
    };
    try {
      await run(proven);
    } finally {
      proven();
    }
  }

  /** Nothing starts until `#open`. Resolves when nothing is unproven, or after `patienceMs`. */
  async #close(patienceMs: number): Promise<void> {
    this.#closed = Promise.withResolvers<void>();
    if (this.#unproven.size === 0) return;
    const quiet = Promise.withResolvers<void>();
    this.#quiet = quiet.resolve;
    await Promise.race([quiet.promise, waitForAnswer(patienceMs)]);
    this.#quiet = undefined;
  }

  #open(): void {
    this.#closed?.resolve();
    this.#closed = undefined;
    this.#onOpen();
  }
}
