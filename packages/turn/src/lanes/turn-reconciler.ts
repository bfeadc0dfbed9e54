import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import type { AcceptedTurn } from '@concierge/contract';
import { unlessLater } from '@concierge/files';
import { isFirstSlot, findSlot, listSlots, type Log } from '@concierge/runtime';
import type { Tenants, TenantScope } from '@concierge/tenant';
import type { WakeupQueue } from './wakeup-queue.ts';
import { LogRecovery } from '../wal/log-recovery.ts';
import { Reconciler, takeTask, unhurried, type OnRepaired } from '../due/reconciler.ts';
import { keyOf } from '../keys.ts';
import { LaneRepair } from './lane-repair.ts';
import type { Lanes, EnqueueOptions } from './lanes.ts';

const SWEEP_EVERY_MS = 2000;
const LANES_PER_SWEEP = 500;
const SCAN_EVERY_MS = 3000;
/** Prolonged with every tenant: when the restoring process dies, another soon takes over. */
const RESTORE_LOCK_MS = 5000;
/**
 * A turn that one scan finds without a lane may just be being accepted. A turn that the next scan finds again, within
 * this time, is not.
 */
const SEEN_FOR_MS = 10 * 60_000;
const STATES_AT_ONCE = 500;

export interface TurnReconcilerOptions {
  /** It looks after what is in the slot of this connection. */
  readonly redis: Redis;
  readonly lanes: Lanes;
  readonly wakeupQueue: WakeupQueue;
  readonly tenants: Tenants;
  readonly onRepaired?: OnRepaired;
  readonly log: Log;
}

/** One for each slot: none waits for a slot that is away. */
export function listTurnReconcilers(options: TurnReconcilerOptions): TurnReconciler[] {
  return listSlots(options.redis).map((redis) => new TurnReconciler({ ...options, redis }));
}

/**
 * Repairs what a crash left, in every worker and cron replica: a lane without a wake-up, a lease without a worker, an
 * inbox file without a lane, a Redis that came back empty.
 */
export class TurnReconciler extends Reconciler {
  readonly name = 'reconciler';
  readonly #options: TurnReconcilerOptions;
  readonly #repair: LaneRepair;
  readonly #logs: LogRecovery;

  constructor(options: TurnReconcilerOptions) {
    super({ everyMs: SWEEP_EVERY_MS, log: options.log });
    this.#options = options;
    this.#repair = new LaneRepair(options);
    this.#logs = new LogRecovery(options);
  }

  override async reconcile(): Promise<void> {
    const { redis, lanes, wakeupQueue } = this.#options;
    const { isReady, runId } = await lanes.readiness({ notesTime: true, slot: redis });
    if (!isReady) await this.#restoreAll(runId);
    // Another process is still restoring lanes: until every turn has its place nothing runs, and no turn is an orphan.
    if (!isReady && !(await lanes.readiness({ slot: redis })).isReady) return;
    const late = await lanes.sweep(LANES_PER_SWEEP, redis);
    await wakeupQueue.wake(late);
    this.#options.onRepaired?.('wakeup', late.length);
    // The process whose timer should start debounced lanes may have died.
    await wakeupQueue.wake((await lanes.findDue(redis)).wakeups);
    await this.share(redis, { task: keyOf.scanLock, everyMs: SCAN_EVERY_MS }, async () => {
      const enqueued = await this.#restoreLanes('orphan');
      this.#options.onRepaired?.('orphan', enqueued);
      if (isFirstSlot(redis)) await this.#logs.recoverDead();
    });
  }

  async #restoreAll(runId: string): Promise<void> {
    const { redis, lanes, wakeupQueue, tenants, log } = this.#options;
    if (!(await takeTask(redis, keyOf.restoreLock, { forMs: RESTORE_LOCK_MS }))) return;
    const restore = randomUUID();
    await lanes.beginRestore(restore, redis);
    // What Redis has lost may be in logs alone: of dead processes, and of those that live.
    await this.#logs.fileAll(async () => this.#keepRestoring());
    const enqueued = await this.#restoreLanes('emptied');
    const wakeups = await lanes.open({ runId, restore, generation: await tenants.nextGeneration() }, redis);
    await redis.del(keyOf.restoreLock);
    // Emptied once more meanwhile: the next round begins anew.
    if (wakeups === undefined) return;
    await wakeupQueue.wake(wakeups);
    this.#options.onRepaired?.('restore', 1);
    log.info({ enqueued }, 'Redis was emptied or started again: lanes enqueued from the inboxes');
  }

  async #restoreLanes(found: 'orphan' | 'emptied'): Promise<number> {
    const { redis, tenants } = this.#options;
    let enqueued = 0;
    for await (const tenantId of unhurried(await tenants.list({ isSure: found === 'emptied' }))) {
      if (findSlot(redis, tenantId) !== redis) continue;
      enqueued += await this.#restoreTenant(tenantId, found);
      if (found === 'emptied') await this.#keepRestoring();
    }
    return enqueued;
  }

  async #keepRestoring(): Promise<void> {
    await takeTask(this.#options.redis, keyOf.restoreLock, { forMs: RESTORE_LOCK_MS, keeps: true });
  }

  async #restoreTenant(tenantId: string, found: 'orphan' | 'emptied'): Promise<number> {
    const { tenants, log } = this.#options;
    try {
      const turnIds = await tenants.inboxTurnIds(tenantId, { isSure: found === 'emptied' });
      if (turnIds.length === 0) return 0;
      const scope = await tenants.open(tenantId);
      const missing = await this.#withoutLane(scope, turnIds);
      const lost = found === 'emptied' ? missing : await this.#seenBefore(missing);
      const turns = await Promise.all(lost.map(async (turnId) => await unlessLater(scope.inbox.read(turnId))));
      const inOrder = turns.filter((turn) => turn !== undefined).toSorted((left, right) => left.acceptedAtMs - right.acceptedAtMs);
      for (const turn of inOrder) await this.#enqueue(scope, turn, found);
      // Repaired after all files have been read: a turn that gets a number before its file is written has the number by
      // now.
      for (const sessionId of await scope.laneOrder.sessionIds()) await unlessLater(this.#repair.repair(scope, { sessionId }));
      return inOrder.length;
    } catch (error) {
      // One tenant's broken folder does not stop the others. A Redis that refuses writes does: later turns would
      // overtake the missing ones.
      if (found === 'emptied' && !(error instanceof Error && 'path' in error)) throw error;
      log.error({ err: error, tenantId }, 'cannot look through the inbox');
      return 0;
    }
  }

  /**
   * Finds turns that are not in Redis. An ended turn was announced by a worker that died before it could remove the
   * inbox file.
   */
  async #withoutLane(scope: TenantScope, turnIds: readonly string[]): Promise<string[]> {
    const missing: string[] = [];
    for (let at = 0; at < turnIds.length; at += STATES_AT_ONCE) {
      const some = turnIds.slice(at, at + STATES_AT_ONCE);
      const states = await Promise.all(some.map(async (turnId) => await this.#options.redis.hget(keyOf.turn(turnId), 'state')));
      for (const [index, turnId] of some.entries()) {
        const state = states[index];
        if (state == null) missing.push(turnId);
        else if (state !== 'waiting' && state !== 'running') await scope.inbox.remove(turnId);
      }
    }
    return missing;
  }

  /**
   * Filters turns that an earlier scan, by any process, has also found without a lane: no clock gives the age of a file
   * reliably.
   */
  async #seenBefore(turnIds: readonly string[]): Promise<string[]> {
    const { redis } = this.#options;
    const seen: string[] = [];
    for (const turnId of turnIds) {
      if ((await redis.set(keyOf.seenWithoutLane(turnId), '1', 'PX', SEEN_FOR_MS, 'NX')) === null) seen.push(turnId);
    }
    return seen;
  }

  async #enqueue(scope: TenantScope, turn: AcceptedTurn, found: EnqueueOptions['found']): Promise<void> {
    const cancelled = await scope.inbox.isCancelled(turn.turnId);
    await this.#options.lanes.enqueue(turn, { busy: 'queue', found, cancelled });
  }
}
