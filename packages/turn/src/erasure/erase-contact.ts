import { join } from 'node:path';
import { readFile } from 'node:fs/promises';
import type { ErasedCounts, Erasure, ErasureBody, ErasurePlace, ErasureReport, ErasureTraces } from '@concierge/contract';
import { isSystemError, lstatIfThere, namesIn } from '@concierge/files';
import { failpoint, findSlot, waitForAnswer, type Log } from '@concierge/runtime';
import { eraseTraces, findPlaces, findTraces, identifyContact, type Tenants, type TenantScope } from '@concierge/tenant';
import type { Redis } from 'ioredis';
import { Reconciler, takeTask } from '../due/reconciler.ts';
import { keyOf } from '../keys.ts';
import type { Turns } from '../turns.ts';
import { listLogs } from '../wal/log-records.ts';

/** A turn that is cancelled ends its commands and is saved, which takes seconds. */
const STOP_TIMEOUT_MS = 10_000;
/** What ends while the rest is removed is found by the next round. */
const ROUNDS_MAX = 5;
const KEYS_AT_ONCE = 500;

export interface ErasureOptions {
  readonly turns: Pick<Turns, 'endTurns'>;
  readonly redis: Redis;
  /** tenants/.wal */
  readonly logsFolder: string;
  readonly stopTimeoutMs?: number;
  /** How long a caller waits at most. */
  readonly answerMs?: number;
}

/** A large tenant takes longer: the erasure goes on meanwhile. */
const ANSWER_MS = 20_000;

/** One process at a time is at an erasure; the claim of one that died ends. */
const CLAIM_MS = 10_000;
const RENEW_EVERY_MS = 3000;

/**
 * Erases everything of one contact: on disk before anything is removed, so that it goes on after a crash, by
 * `ErasureReconciler` or a caller who asks again.
 * @returns how far it came
 * @throws AppError not_found, for a conversation that there is not
 */
export async function eraseContact(options: ErasureOptions, scope: TenantScope, whom: ErasureBody): Promise<ErasureReport> {
  const { id, traces } = await identifyContact(scope, whom);
  await scope.erasures.begin(id, traces);
  await failpoint('erasure.after-begin');
  const work = continueErasure(options, scope, id);
  // What fails later is tried again by the cron service, which reports it.
  work.catch(() => undefined);
  await Promise.race([work, waitForAnswer(options.answerMs ?? ANSWER_MS)]);
  return scope.erasures.report(id);
}

/** Goes on with an erasure as far as it comes. Not for ever: turns have to end, and logs to be written anew. */
export async function continueErasure(options: ErasureOptions, scope: TenantScope, id: string): Promise<void> {
  const { redis } = options;
  const claim = keyOf.erasing(`${scope.tenantId}/${id}`);
  if (!(await takeTask(redis, claim, { forMs: CLAIM_MS }))) return;
  const timer = setInterval(() => void takeTask(redis, claim, { forMs: CLAIM_MS, keeps: true }).catch(() => undefined), RENEW_EVERY_MS);
  try {
    const erasure = await scope.erasures.find(id);
    if (erasure === undefined) return;
    await (erasure.logs === null ? eraseAll(options, scope, erasure) : awaitLogs(options, scope, erasure));
  } finally {
    clearInterval(timer);
    await redis.del(claim);
  }
}

async function eraseAll(options: ErasureOptions, scope: TenantScope, erasure: Erasure): Promise<void> {
  const removed = await removeAll(options, scope, erasure);
  if (removed.waitsFor !== null) return scope.erasures.put(removed);
  const { places, hasMore } = await findPlaces(scope, removed.traces);
  await scope.index.scrub();
  const logs = await findSegments(options.logsFolder, removed.traces);
  const lookAt = mergePlaces(removed.lookAt, places);
  const rest: Erasure = { ...removed, lookAt, hasMore, logs, waitsFor: logs.length === 0 ? null : 'logs' };
  // Now only the logs are looked at: what the contact writes from here on is new.
  await scope.erasures.put(rest);
  await failpoint('erasure.before-finish');
  await awaitLogs(options, scope, rest);
}

/** In rounds, until one finds nothing. */
async function removeAll(
  { turns, redis, stopTimeoutMs = STOP_TIMEOUT_MS }: ErasureOptions,
  scope: TenantScope,
  begun: Erasure,
): Promise<Erasure> {
  let erasure = begun;
  for (let round = 1; round <= ROUNDS_MAX; round += 1) {
    erasure = { ...erasure, traces: await findTraces(scope, erasure.traces) };
    await scope.erasures.put(erasure);
    if ((await turns.endTurns(scope, new Set(erasure.traces.turnIds), stopTimeoutMs)) > 0) return { ...erasure, waitsFor: 'turns' };
    // With what those turns left when they ended.
    const traces = await findTraces(scope, erasure.traces);
    await scope.erasures.put({ ...erasure, traces });
    const { counts, places } = await eraseTraces(scope, traces);
    const found: ErasedCounts = { ...counts, streams: await forgetTurns(redis, scope.tenantId, traces) };
    erasure = { ...erasure, traces, waitsFor: null, erased: add(erasure.erased, found), lookAt: mergePlaces(erasure.lookAt, places) };
    if (Object.values(found).every((count) => count === 0)) return erasure;
    await scope.erasures.put(erasure);
  }
  return { ...erasure, waitsFor: 'turns' };
}

async function awaitLogs({ logsFolder }: ErasureOptions, scope: TenantScope, erasure: Erasure): Promise<void> {
  const looked = await Promise.all((erasure.logs ?? []).map(async (segment) => await lstatIfThere(join(logsFolder, segment))));
  if (looked.every((stats) => stats === undefined)) await scope.erasures.finish(erasure);
}

/**
 * Segments with records of the contact, settled or not. They go by themselves: a log starts a new segment after a
 * minute, and one whose records are settled is removed; one of a dead process is recovered, and finds that the
 * conversations were removed. Nothing is changed in a log, whose writer lives.
 */
async function findSegments(logsFolder: string, { sessionIds }: ErasureTraces): Promise<string[]> {
  const found: string[] = [];
  for (const logId of await listLogs(logsFolder)) {
    for (const name of await namesIn(join(logsFolder, logId))) {
      const bytes = await readFile(join(logsFolder, logId, name)).catch((error: unknown) => {
        if (isSystemError(error, 'ENOENT')) return Buffer.alloc(0);
        throw error;
      });
      if (sessionIds.some((id) => bytes.includes(id))) found.push(join(logId, name));
    }
  }
  return found;
}

/** Turns and their streams in Redis, which keeps them for a day; how many. */
async function forgetTurns(anySlot: Redis, tenantId: string, { sessionIds, turnIds }: ErasureTraces): Promise<number> {
  const redis = findSlot(anySlot, tenantId);
  const [sessions, known] = [new Set(sessionIds), new Set(turnIds)];
  const prefix = keyOf.turn('');
  let forgotten = 0;
  for await (const page of redis.scanStream({ match: `${prefix}*`, count: KEYS_AT_ONCE })) {
    const ids = (Array.isArray(page) ? page.map(String) : []).map((key) => key.slice(prefix.length));
    for (const turnId of ids) {
      const [account, session] = await redis.hmget(keyOf.turn(turnId), 'account', 'session');
      if (account !== tenantId || (!known.has(turnId) && !sessions.has(session ?? ''))) continue;
      known.add(turnId);
      forgotten += await redis.unlink(keyOf.turn(turnId));
    }
  }
  for (const turnId of known) {
    await redis.unlink(keyOf.events(turnId));
    await redis.hdel(keyOf.logged(tenantId), turnId);
  }
  for (const sessionId of sessions) await redis.unlink(keyOf.lease({ tenantId, sessionId }));
  return forgotten;
}

function add(one: ErasedCounts, other: ErasedCounts): ErasedCounts {
  return {
    sessions: one.sessions + other.sessions,
    turns: one.turns + other.turns,
    notes: one.notes + other.notes,
    entries: one.entries + other.entries,
    uploads: one.uploads + other.uploads,
    deliveries: one.deliveries + other.deliveries,
    events: one.events + other.events,
    streams: one.streams + other.streams,
  };
}

function mergePlaces(one: readonly ErasurePlace[], other: readonly ErasurePlace[]): ErasurePlace[] {
  return [...new Map([...one, ...other].map((place) => [`${place.kind} ${place.ref}`, place])).values()];
}

const LOOK_EVERY_MS = 5000;

export interface ErasureReconcilerOptions extends ErasureOptions {
  readonly tenants: Pick<Tenants, 'list' | 'open' | 'runningErasures'>;
  readonly log: Log;
}

/** Goes on with erasures of contacts that wait for turns or logs, or were cut off. */
export class ErasureReconciler extends Reconciler {
  readonly name = 'erasures';
  readonly #options: ErasureReconcilerOptions;

  constructor(options: ErasureReconcilerOptions) {
    super({ everyMs: LOOK_EVERY_MS, log: options.log });
    this.#options = options;
  }

  override async reconcile(): Promise<void> {
    const { redis } = this.#options;
    await this.share(redis, { task: keyOf.erasureScanLock, everyMs: LOOK_EVERY_MS }, async () => this.continueAll());
  }

  /** One look through all tenants. Turns that do not end at once are looked for again by the next one. */
  async continueAll(): Promise<void> {
    const { tenants, log } = this.#options;
    await this.forEachTenant(tenants, async (tenantId) => {
      for (const id of await tenants.runningErasures(tenantId)) {
        await continueErasure({ ...this.#options, stopTimeoutMs: 0 }, await tenants.open(tenantId), id).catch((error: unknown) => {
          log.error({ err: error, tenantId, erasure: id }, 'an erasure is not finished; tried again');
        });
      }
    });
  }
}
