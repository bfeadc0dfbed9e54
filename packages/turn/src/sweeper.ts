import type { Redis } from 'ioredis';
import type { AcceptedTurn } from '@concierge/contract';
import { background, type Log } from '@concierge/runtime';
import type { Tenants, TenantScope } from '@concierge/tenant';
import type { Doorbells } from './doorbells.ts';
import { keyOf } from './keys.ts';
import type { Lanes, PlaceOptions } from './lanes.ts';

const SWEEP_EVERY_MS = 2000;
const LANES_PER_SWEEP = 500;
/** A look through all inboxes costs at most a twentieth of one replica's time. */
const SCAN_LOAD = 20;
const SCAN_EVERY_AT_LEAST_MS = 5000;
/** Prolonged with every tenant: whoever dies while it lays is soon followed by another. */
const LAY_LOCK_MS = 5000;
/** Younger files are just being accepted. */
const ORPHAN_AGE_MS = 3000;
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
 * without a lane, a Redis that came back empty. Speed never depends on it, truth always does.
 */
export class Sweeper {
  readonly name = 'sweeper';
  readonly #options: SweeperOptions;
  #timer: NodeJS.Timeout | undefined;
  #sweeping: Promise<void> | undefined;
  #lastScanMs = 0;

  constructor(options: SweeperOptions) {
    this.#options = options;
  }

  start(): void {
    this.#tick();
    this.#timer = setInterval(() => {
      this.#tick();
    }, SWEEP_EVERY_MS);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#sweeping?.catch(() => undefined);
  }

  /** One round. */
  async sweep(): Promise<void> {
    const { redis, lanes, doorbells } = this.#options;
    if ((await redis.exists(keyOf.laid)) === 0) await this.#layEverything();
    // Another is still laying: until every turn is in its place nothing runs, and none is an orphan.
    if ((await redis.exists(keyOf.laid)) === 0) return;
    await doorbells.ring(await lanes.sweep(LANES_PER_SWEEP));
    // Whoever was to let go of them may have died.
    await doorbells.ring((await lanes.ripen()).rings);
    const every = Math.max(SCAN_EVERY_AT_LEAST_MS, this.#lastScanMs * SCAN_LOAD);
    if ((await redis.set(keyOf.scanLock, '1', 'PX', every, 'NX')) === 'OK') await this.#layAll('orphan');
  }

  #tick(): void {
    if (this.#sweeping !== undefined) return;
    this.#sweeping = this.sweep().finally(() => {
      this.#sweeping = undefined;
    });
    background(this.#sweeping, this.#options.log);
  }

  async #layEverything(): Promise<void> {
    const { redis, lanes, doorbells, log } = this.#options;
    if ((await redis.set(keyOf.layLock, '1', 'PX', LAY_LOCK_MS, 'NX')) !== 'OK') return;
    const laid = await this.#layAll('emptied');
    await doorbells.ring(await lanes.open());
    await redis.del(keyOf.layLock);
    log.info({ laid }, 'Redis was empty: lanes laid from the inboxes');
  }

  async #layAll(found: 'orphan' | 'emptied'): Promise<number> {
    const began = Date.now();
    let laid = 0;
    for (const accountId of await this.#options.tenants.list()) {
      laid += await this.#layTenant(accountId, found);
      if (found === 'emptied') await this.#options.redis.pexpire(keyOf.layLock, LAY_LOCK_MS);
    }
    this.#lastScanMs = Date.now() - began;
    return laid;
  }

  async #layTenant(accountId: string, found: 'orphan' | 'emptied'): Promise<number> {
    const { tenants, log } = this.#options;
    try {
      const turnIds = await tenants.inboxTurnIds(accountId);
      if (turnIds.length === 0) return 0;
      const scope = await tenants.open(accountId);
      const missing = await this.#withoutLane(scope, turnIds);
      const turns = await Promise.all(missing.map(async (turnId) => await scope.inbox.read(turnId)));
      const youngest = found === 'emptied' ? Infinity : Date.now() - ORPHAN_AGE_MS;
      const inOrder = turns
        .filter((turn) => turn !== undefined)
        .filter((turn) => turn.acceptedAtMs < youngest)
        .toSorted((left, right) => left.acceptedAtMs - right.acceptedAtMs);
      for (const turn of inOrder) await this.#lay(scope, turn, found);
      return inOrder.length;
    } catch (error) {
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

  async #lay(scope: TenantScope, turn: AcceptedTurn, found: PlaceOptions['found']): Promise<void> {
    const { lanes, doorbells } = this.#options;
    const cancelled = await scope.inbox.isCancelled(turn.turnId);
    const placed = await lanes.place(turn, { busy: 'queue', found, cancelled });
    if (placed.kind === 'laid') await doorbells.ring(placed.rings);
  }
}
