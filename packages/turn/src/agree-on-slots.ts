import { setTimeout as wait } from 'node:timers/promises';
import { ConfigError, listSlots, type Log } from '@concierge/runtime';
import type { Redis } from 'ioredis';
import { claimTask } from './due/reconciler.ts';
import { keyOf, queuePrefix } from './keys.ts';
import { PROCESS_SILENCE_MS, readClocks } from './running-processes.ts';

const LOCK_MS = 60_000;
const LOOK_EVERY_MS = 200;
const KEYS_AT_ONCE = 500;

/** What says something of tenants neither in files nor in another slot: it stays when the slots are others. */
const keptKinds = new Set(['slots', 'slots-lock', 'processes', 'process-facts', 'clock', 'series', 'kept-log']);

/** The number of slots that the deployment in this Redis has. */
async function readSlotCount(redis: Redis): Promise<number> {
  return Number((await redis.get(keyOf.slots)) ?? 1);
}

/** Whether no master has anything. */
export async function isEmptyRedis(redis: Redis): Promise<boolean> {
  const sizes = await Promise.all(listSlots(redis).map(async (slot) => slot.dbsize()));
  return sizes.every((size) => size === 0);
}

/** @throws ConfigError when the deployment has another number of slots */
export async function assertSlots(redis: Redis): Promise<void> {
  const [stored, own] = [await readSlotCount(redis), listSlots(redis).length];
  // An empty one has no number: the service that starts first gives it one.
  if (stored !== own && !(await isEmptyRedis(redis)))
    throw new ConfigError([`REDIS_SLOTS: must be ${String(stored)}, as it is for the services (given: ${String(own)})`]);
}

/**
 * For a service: all that run agree on the number of slots. Where none runs, another number may be given: what Redis
 * has is thrown away then, and made again from the files. `open`: connects to so many slots.
 * @throws ConfigError when processes run with another number
 */
export async function agreeOnSlots(redis: Redis, open: (slots: number) => Redis, log: Log): Promise<void> {
  const own = listSlots(redis).length;
  if (own > 1) await announceStart(redis);
  for (;;) {
    const stored = await readSlotCount(redis);
    // While the lock is there, another number may be about to be stored.
    if (stored === own && (await redis.exists(keyOf.slotsLock)) === 0) return;
    if (stored !== own) await assertNoneRuns(redis, { stored, own });
    const lock = await SlotsLock.take(redis);
    if (lock === undefined) {
      await wait(LOOK_EVERY_MS);
      continue;
    }
    const isSame = (await readSlotCount(redis)) === stored;
    // Asked again: one with the stored number that began meanwhile has announced itself, or waits for the lock.
    if (isSame && stored !== own && !(await doOthersRun(redis))) await changeSlots({ redis, before: open(stored), lock }, log);
    await lock.release();
    if (isSame && stored === own) return;
  }
}

/**
 * Held while the slots are changed, and prolonged before each step. A holder whose time was over, and in whose place
 * another has taken it, does nothing more: that one may be done by now, and its process at work in the new slots.
 */
class SlotsLock {
  readonly #redis: Redis;
  #holds: number;

  private constructor(redis: Redis, holds: number) {
    this.#redis = redis;
    this.#holds = holds;
  }

  static async take(redis: Redis): Promise<SlotsLock | undefined> {
    const holds = await claimTask(redis, keyOf.slotsLock, { forMs: LOCK_MS, notesTime: true });
    return holds === 0 ? undefined : new SlotsLock(redis, holds);
  }

  /** False when it is another's. A process that starts with another number is refused until the change has ended. */
  async keep(): Promise<boolean> {
    const holds = await claimTask(this.#redis, keyOf.slotsLock, { forMs: LOCK_MS, holds: this.#holds, notesTime: true });
    if (holds === 0) return false;
    this.#holds = holds;
    await announceStart(this.#redis);
    return true;
  }

  async release(): Promise<void> {
    await claimTask(this.#redis, keyOf.slotsLock, { forMs: 0, holds: this.#holds });
  }
}

/** Written again while the slots are changed: an announcement counts for `PROCESS_SILENCE_MS`. */
async function announceStart(redis: Redis): Promise<void> {
  await redis.zadd(keyOf.processes, (await readClocks(redis)).nowMs, startingName(listSlots(redis).length));
}

/** Counts as a process until it has announced itself, so that no other throws away what it has just made. */
function startingName(slots: number): string {
  return `starting with ${String(slots)}`;
}

/** Whether any process runs, or starts with another number. */
async function doOthersRun(redis: Redis): Promise<boolean> {
  const { nowMs } = await readClocks(redis);
  const running = await redis.zrangebyscore(keyOf.processes, nowMs - PROCESS_SILENCE_MS, '+inf');
  const own = startingName(listSlots(redis).length);
  return running.some((name) => name !== own);
}

/** @throws ConfigError when any process runs, or starts, with another number than its own */
async function assertNoneRuns(redis: Redis, { stored, own }: { readonly stored: number; readonly own: number }): Promise<void> {
  if (!(await doOthersRun(redis))) return;
  // What runs announces its number again where Redis has lost it: then the caller looks anew.
  if ((await readSlotCount(redis)) !== stored) return;
  const seconds = String(PROCESS_SILENCE_MS / 1000);
  throw new ConfigError([
    `REDIS_SLOTS: must be ${String(stored)}, as it is for the processes that run; stop all of them to change it (given: ${String(own)}; one that was killed counts for ${seconds} s)`,
  ]);
}

interface SlotsChange {
  readonly redis: Redis;
  readonly before: Redis;
  readonly lock: SlotsLock;
}

/** Ends in the middle when the lock is lost. */
async function changeSlots({ redis, before, lock }: SlotsChange, log: Log): Promise<void> {
  const slots = [...listSlots(redis), ...listSlots(before).slice(1)];
  // First of all: what is accepted from now on gets its number on disk, until everything is in Redis again.
  for (const slot of slots) {
    if (!(await lock.keep())) return;
    await slot.del(keyOf.enqueued);
  }
  for (const slot of slots) {
    if (!(await emptySlot(slot, lock))) return;
  }
  if (!(await lock.keep())) return;
  const own = listSlots(redis).length;
  await redis.set(keyOf.slots, own);
  log.info({ before: listSlots(before).length, slots: own }, 'REDIS_SLOTS has changed: lanes are made again from the files');
}

/** False when the lock was lost before all was gone. */
async function emptySlot(slot: Redis, lock: SlotsLock): Promise<boolean> {
  for await (const page of slot.scanStream({ match: `${queuePrefix}:*`, count: KEYS_AT_ONCE })) {
    const keys = Array.isArray(page) ? page.map(String) : [];
    const old = keys.filter((key) => !keptKinds.has(key.slice(queuePrefix.length + 1).split(':', 1)[0] ?? ''));
    // Asked after the page was read, so that no other has written any of it.
    if (!(await lock.keep())) return false;
    if (old.length > 0) await slot.unlink(...old);
  }
  return true;
}
