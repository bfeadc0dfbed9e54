import { AppError } from '@concierge/contract';
import { findSlot, listSlots, type Log } from '@concierge/runtime';
import type { Tenants } from '@concierge/tenant';
import type { Redis } from 'ioredis';
import { Reconciler } from './due/reconciler.ts';
import { keyOf, queuePrefix } from './keys.ts';
import type { Turns } from './turns.ts';

/** A turn that is cancelled ends its commands and is saved, which takes seconds. */
const STOP_TIMEOUT_MS = 30_000;

export interface TenantRemovalOptions {
  readonly tenants: Pick<Tenants, 'open' | 'setSuspended' | 'delete'>;
  readonly turns: Pick<Turns, 'stopAll'>;
  readonly redis: Redis;
  readonly stopTimeoutMs?: number;
}

/**
 * Deletes a tenant whose agents may be at work. Order is part of the meaning: no new turn starts (suspended), the
 * running ones end and their sandboxes with them, then its name, its keys in Redis, its index and its files are
 * removed.
 * @returns how many turns did not end in time: what they still write is lost and reaches no tenant.
 * @throws AppError not_found; conflict, when its files are written as fast as they are removed
 */
export async function removeTenant(options: TenantRemovalOptions, id: string): Promise<{ readonly stillRunning: number }> {
  const { tenants, turns, redis, stopTimeoutMs = STOP_TIMEOUT_MS } = options;
  const scope = await tenants.open(id);
  await tenants.setSuspended(id, true).catch((error: unknown) => {
    // Settings that cannot be written keep nothing from being removed.
    if (!(error instanceof AppError)) throw error;
  });
  const stillRunning = await turns.stopAll(scope, stopTimeoutMs);
  await tenants.delete(id, async () => forgetTenant(redis, id));
  return { stillRunning };
}

const RECONCILE_EVERY_MS = 10 * 60_000;

export interface RemovalReconcilerOptions {
  readonly tenants: Pick<Tenants, 'sweepRemoved'>;
  readonly redis: Redis;
  readonly log: Log;
}

/** Finishes deletions of tenants that a crash interrupted. */
export class RemovalReconciler extends Reconciler {
  readonly name = 'removed tenants';
  readonly #options: RemovalReconcilerOptions;

  constructor(options: RemovalReconcilerOptions) {
    super({ everyMs: RECONCILE_EVERY_MS, log: options.log });
    this.#options = options;
  }

  override async reconcile(): Promise<void> {
    const { tenants, redis, log } = this.#options;
    const finished = await tenants.sweepRemoved(async (tenantId) => forgetTenant(redis, tenantId));
    if (finished > 0) log.info({ finished }, 'finished deletions of tenants that were interrupted');
  }
}

const KEYS_AT_ONCE = 500;

/**
 * Kinds of keys whose name goes on with the tenant's id, and then ends, or goes on with `/`, of a share with `@`, or of
 * what is counted with `:`.
 */
const kindsByTenant = new Set([
  'logged',
  'lane',
  'lease',
  'line',
  'admitted',
  'deliveries-seen',
  'binding-tried',
  'pace',
  'pace-hold',
  'early-receipts',
  'early-receipts-of',
  'due-of',
  'requests',
  'stream-bytes',
  'history-cursors',
  'budget-spent',
  'budget-held',
  'budget-reached',
  'erasing',
]);

/**
 * Deletes everything of a removed tenant from Redis: its turns with the text that was streamed, its lanes and its due
 * work. A tenant created later with the same name finds none of it.
 */
export async function forgetTenant(redis: Redis, tenantId: string): Promise<void> {
  // Its due work is in the first slot.
  const [first = redis] = listSlots(redis);
  for (const slot of new Set([first, findSlot(redis, tenantId)])) await forgetIn(slot, tenantId);
}

async function forgetIn(redis: Redis, tenantId: string): Promise<void> {
  const pages = redis.scanStream({ match: `${queuePrefix}:*`, count: KEYS_AT_ONCE });
  for await (const page of pages) {
    const keys = Array.isArray(page) ? page.map(String) : [];
    const own = [...keys.filter((key) => isTenantKey(key, tenantId)), ...(await findTurnKeys(redis, keys, tenantId))];
    if (own.length > 0) await redis.unlink(...own);
  }
  for (const dueWork of [keyOf.due, keyOf.debounced, ...['schedules', 'events', 'deliveries'].flatMap(listDueSets)]) {
    for await (const page of redis.zscanStream(dueWork, { match: `${tenantId}/*`, count: KEYS_AT_ONCE })) {
      // Members and their scores in turns; no score has a slash.
      const members = Array.isArray(page) ? page.map(String).filter((member) => member.startsWith(`${tenantId}/`)) : [];
      if (members.length > 0) await redis.zrem(dueWork, ...members);
    }
  }
}

function listDueSets(kind: string): string[] {
  const due = keyOf.dueWork(kind);
  return [due, `${due}:claimed`];
}

function isTenantKey(key: string, tenantId: string): boolean {
  if (key.startsWith(keyOf.dueWork(`events/${tenantId}/`))) return true;
  const [kind = '', ...rest] = key.slice(queuePrefix.length + 1).split(':');
  return kindsByTenant.has(kind) && rest.join(':').split(/[/@:]/u, 1)[0] === tenantId;
}

/** A turn's keys contain only its id: its record names the tenant. */
async function findTurnKeys(redis: Redis, keys: readonly string[], tenantId: string): Promise<string[]> {
  const prefix = keyOf.turn('');
  const turnIds = keys.filter((key) => key.startsWith(prefix)).map((key) => key.slice(prefix.length));
  const accounts = await Promise.all(turnIds.map(async (turnId) => redis.hget(keyOf.turn(turnId), 'account')));
  const own = turnIds.filter((_, index) => accounts[index] === tenantId);
  return own.flatMap((turnId) => [keyOf.turn(turnId), keyOf.events(turnId)]);
}
