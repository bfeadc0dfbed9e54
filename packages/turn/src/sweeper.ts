import type { Redis } from 'ioredis';
import type { AcceptedTurn } from '@concierge/contract';
import type { Log } from '@concierge/runtime';
import type { Tenants, TenantScope } from '@concierge/tenant';
import type { Doorbells } from './doorbells.ts';
import { Reconciler } from './due/reconciler.ts';
import { keyOf } from './keys.ts';
import { LaneRepair } from './lane-repair.ts';
import type { Lanes, PlaceOptions } from './lanes.ts';
import { takeTask } from './take-task.ts';

const SWEEP_EVERY_MS = 2000;
const LANES_PER_SWEEP = 500;
const SCAN_EVERY_MS = 3000;
/** Prolonged with every tenant: whoever dies while it lays is soon followed by another. */
const LAY_LOCK_MS = 5000;
/** A turn that one look finds without a lane is just being accepted, perhaps. One that the next look finds again, within this time, is not. */
const SEEN_FOR_MS = 10 * 60_000;
const STATES_AT_ONCE = 500;

export interface SweeperOptions {
  readonly redis: Redis;
  readonly lanes: Lanes;
  readonly doorbells: Doorbells;
  readonly tenants: Tenants;
  readonly log: Log;
}

/**
 * Repairs what a crash left, in every worker and cron replica: a lane without a doorbell, a lease without a worker, an inbox file
 * without a lane, a Redis that came back empty.
 */
export class Sweeper extends Reconciler {
  readonly name = 'sweeper';
  readonly #options: SweeperOptions;
  readonly #repair: LaneRepair;

  constructor(options: SweeperOptions) {
    super({ everyMs: SWEEP_EVERY_MS, log: options.log });
    this.#options = options;
    this.#repair = new LaneRepair(options);
  }

  override async reconcile(): Promise<void> {
    const { redis, lanes, doorbells } = this.#options;
    const { isReady, runId } = await lanes.readiness({ notesTime: true });
    if (!isReady) await this.#layEverything(runId);
    // Another is still laying: until every turn is in its place nothing runs, and none is an orphan.
    if (!isReady && !(await lanes.readiness()).isReady) return;
    await doorbells.ring(await lanes.sweep(LANES_PER_SWEEP));
    // Whoever was to let go of them may have died.
    await doorbells.ring((await lanes.ripen()).rings);
    await this.share(redis, { task: keyOf.scanLock, everyMs: SCAN_EVERY_MS }, async () => void (await this.#layAll('orphan')));
  }

  async #layEverything(runId: string): Promise<void> {
    const { redis, lanes, doorbells, tenants, log } = this.#options;
    if (!(await takeTask(redis, keyOf.layLock, { forMs: LAY_LOCK_MS }))) return;
    const laid = await this.#layAll('emptied');
    await doorbells.ring(await lanes.open({ runId, generation: await tenants.nextGeneration() }));
    await redis.del(keyOf.layLock);
    log.info({ laid }, 'Redis was emptied or started again: lanes laid from the inboxes');
  }

  async #layAll(found: 'orphan' | 'emptied'): Promise<number> {
    let laid = 0;
    for (const accountId of await this.#options.tenants.list()) {
      laid += await this.#layTenant(accountId, found);
      if (found === 'emptied') await takeTask(this.#options.redis, keyOf.layLock, { forMs: LAY_LOCK_MS, keeps: true });
    }
    return laid;
  }

  async #layTenant(accountId: string, found: 'orphan' | 'emptied'): Promise<number> {
    const { tenants, log } = this.#options;
    try {
      const turnIds = await tenants.inboxTurnIds(accountId);
      if (turnIds.length === 0) return 0;
      const scope = await tenants.open(accountId);
      const missing = await this.#withoutLane(scope, turnIds);
      const lost = found === 'emptied' ? missing : await this.#seenBefore(missing);
      const turns = await Promise.all(lost.map(async (turnId) => await scope.inbox.read(turnId)));
      const inOrder = turns.filter((turn) => turn !== undefined).toSorted((left, right) => left.acceptedAtMs - right.acceptedAtMs);
      for (const turn of inOrder) await this.#lay(scope, turn, found);
      // After all files have been read: one that is seen there has its number by now, if it gets one before it is written.
      for (const sessionId of await scope.laneOrder.sessionIds()) await this.#repair.repair(scope, { sessionId });
      return inOrder.length;
    } catch (error) {
      // One tenant's broken folder does not hold up the others. A Redis that takes no more does: what is missing in it would be overtaken.
      if (found === 'emptied' && !(error instanceof Error && 'path' in error)) throw error;
      log.error({ err: error, accountId }, 'cannot look through the inbox');
      return 0;
    }
  }

  /** Those that Redis knows nothing of. One that has ended was announced by a worker that died before it could clear up. */
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

  /** Those that an earlier look, of any process, has found without a lane: no clock tells how old a file is. */
  async #seenBefore(turnIds: readonly string[]): Promise<string[]> {
    const { redis } = this.#options;
    const seen: string[] = [];
    for (const turnId of turnIds) {
      if ((await redis.set(keyOf.seenWithoutLane(turnId), '1', 'PX', SEEN_FOR_MS, 'NX')) === null) seen.push(turnId);
    }
    return seen;
  }

  async #lay(scope: TenantScope, turn: AcceptedTurn, found: PlaceOptions['found']): Promise<void> {
    const { lanes, doorbells } = this.#options;
    const cancelled = await scope.inbox.isCancelled(turn.turnId);
    const placed = await lanes.place(turn, { busy: 'queue', found, cancelled });
    if (placed.kind === 'laid') await doorbells.ring(placed.rings);
  }
}
