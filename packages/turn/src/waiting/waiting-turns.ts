import { askSlots, findSlot, listSlots } from '@concierge/runtime';
import type { Redis } from 'ioredis';
import type { WaitReason } from '@concierge/contract';
import { keyOf, laneMember, type Lane } from '../keys.ts';
import { askInTime } from '../wal/log-records.ts';
import { readClock, readLanes, toLane, toPool, type LaneFacts } from './lane-facts.ts';
import { readWorkers, type ReportedWorker } from './workers.ts';

/** Turns of one conversation that wait for the same reason. */
export interface WaitingTurns extends Lane {
  readonly reason: WaitReason;
  /** The first of them. */
  readonly turnId: string;
  readonly count: number;
  readonly agent: string;
  /** When the first of them was accepted. */
  readonly sinceMs: number;
  /** The turn before them in their conversation. */
  readonly behind: string | undefined;
  readonly isBehindRunning: boolean;
  /** When they are due: the end of the debounce, or the next try. */
  readonly dueInMs: number | undefined;
  /** Conversations of the tenant that stand before this one, and those that have a place. */
  readonly ahead: number | undefined;
  readonly admitted: number | undefined;
}

/** One look at everything that waits. */
export interface WaitingLook {
  readonly waiting: readonly WaitingTurns[];
  /** Conversations that run, by their tenants. */
  readonly running: ReadonlyMap<string, number>;
  readonly workers: readonly ReportedWorker[];
  /** Places of one tenant at each depth. */
  readonly share: number;
  /** By the clock of Redis. */
  readonly atMs: number;
  /** False: more conversations were under way than one look reads. What is known is then at least as much. */
  readonly isWhole: boolean;
}

/** Conversations that one look reads. */
const LANES_MAX = 2000;

interface Seen {
  readonly nowMs: number;
  readonly wallMs: number;
  readonly hasWorkers: boolean;
}

/**
 * Looks at what waits, and for what. It takes no lock and writes nothing; the work of one look is bounded. A tenant
 * that waits for its share has conversations that run: these lead to its line.
 */
export class WaitingRoom {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /** A slot that is away is left out, and the look is not whole. */
  async look(lanesMax = LANES_MAX): Promise<WaitingLook> {
    const slots = listSlots(this.#redis);
    if (slots.length === 1) return await this.#lookAt(this.#redis, lanesMax);
    const looks = await askSlots(this.#redis, async (slot) =>
      askInTime(slot, async () => this.#lookAt(slot, Math.ceil(lanesMax / slots.length))),
    );
    const [first] = looks;
    if (first === undefined) throw new Error('no slot of Redis answers');
    const isWhole = looks.length === slots.length && looks.every((look) => look.isWhole);
    // A tenant is at home in one slot.
    const running = new Map(looks.flatMap((look) => [...look.running]));
    return { ...first, waiting: looks.flatMap(({ waiting }) => waiting), running, isWhole };
  }

  async #lookAt(redis: Redis, lanesMax: number): Promise<WaitingLook> {
    const [clock, workers, share, due, debounced, unopened] = await Promise.all([
      readClock(redis),
      readWorkers(redis),
      redis.get(keyOf.share),
      redis.zrangebyscore(keyOf.due, '-inf', '+inf', 'WITHSCORES', 'LIMIT', 0, lanesMax + 1),
      redis.zrangebyscore(keyOf.debounced, '-inf', '+inf', 'WITHSCORES', 'LIMIT', 0, lanesMax + 1),
      redis.srandmember(keyOf.unopened, lanesMax),
    ]);
    const seen = { ...clock, hasWorkers: workers.some(({ state }) => state === 'running') };
    const dueAt = toScores(due.slice(0, lanesMax * 2));
    const debouncedAt = toScores(debounced.slice(0, lanesMax * 2));
    const admitted = await readLanes(redis, [...dueAt.keys()].map(toLane));
    const held = await readLanes(redis, [...debouncedAt.keys()].map(toLane));
    const pools = new Set([...admitted.map(toPool), ...unopened]);
    const lines = await readLines(redis, [...pools], lanesMax);
    const groups = [
      ...admitted.flatMap((lane) => findWaiting(lane, { ...seen, dueAtMs: dueAt.get(laneMember(lane)) })),
      ...held.flatMap((lane) => all(lane, { reason: 'debounce', dueInMs: toDelay(debouncedAt.get(laneMember(lane)), seen.nowMs) })),
      ...lines.waiting,
    ];
    const waiting = await date(redis, groups);
    const isWhole = due.length <= lanesMax * 2 && debounced.length <= lanesMax * 2 && lines.isWhole;
    const running = countByTenant(admitted.filter((lane) => isRunning(lane, seen.nowMs)));
    return { waiting, running, workers, share: Number(share ?? 0), atMs: clock.wallMs, isWhole };
  }

  /**
   * Why these turns of one tenant wait; one that does not, as far as can be seen, is left out. What they have in common
   * is read once. `atMost`: turns of each lane that are read.
   */
  async explain(
    tenantId: string,
    asked: readonly Pick<WaitingTurns, 'sessionId' | 'turnId'>[],
    atMost = 200,
  ): Promise<{ readonly turns: readonly WaitingTurns[]; readonly look: Omit<WaitingLook, 'waiting' | 'running'> }> {
    const redis = findSlot(this.#redis, tenantId);
    const sessionIds = [...new Set(asked.map(({ sessionId }) => sessionId))];
    const [clock, workers, share, lanes] = await Promise.all([
      readClock(redis),
      readWorkers(redis),
      redis.get(keyOf.share),
      readLanes(
        redis,
        sessionIds.map((sessionId) => ({ tenantId, sessionId })),
        atMost,
      ),
    ]);
    const seen = { ...clock, hasWorkers: workers.some(({ state }) => state === 'running') };
    const turnIds = new Set(asked.map(({ turnId }) => turnId));
    const groups = await Promise.all(lanes.map(async (lane) => this.#explainLane(lane, turnIds, seen)));
    const turns = await date(redis, groups.flat());
    return { turns, look: { workers, share: Number(share ?? 0), atMs: clock.wallMs, isWhole: true } };
  }

  async #explainLane(lane: LaneFacts, turnIds: ReadonlySet<string>, seen: Seen): Promise<Undated[]> {
    const redis = findSlot(this.#redis, lane.tenantId);
    const member = laneMember(lane);
    const [dueAt, debouncedAt] = await Promise.all([redis.zscore(keyOf.due, member), redis.zscore(keyOf.debounced, member)]);
    const known = {
      ...seen,
      dueAtMs: dueAt === null ? undefined : Number(dueAt),
      debouncedAtMs: debouncedAt === null ? undefined : Number(debouncedAt),
    };
    const groups: Undated[] = [];
    for (const [at, turnId] of lane.first.entries()) {
      const group = turnIds.has(turnId) ? await this.#explainGroup(lane, at, known) : undefined;
      if (group !== undefined) groups.push(group);
    }
    return groups;
  }

  async #explainGroup(
    lane: LaneFacts,
    at: number,
    seen: Seen & { readonly dueAtMs: number | undefined; readonly debouncedAtMs: number | undefined },
  ): Promise<Undated | undefined> {
    const turnId = lane.first[at] ?? '';
    if (seen.debouncedAtMs !== undefined)
      return { ...waitingIn(lane, turnId, 1), reason: 'debounce', dueInMs: toDelay(seen.debouncedAtMs, seen.nowMs) };
    if (at > 0) {
      const isBehindRunning = at === 1 && isRunning(lane, seen.nowMs);
      return { ...waitingIn(lane, turnId, 1), reason: 'own_session', behind: lane.first[at - 1], isBehindRunning };
    }
    const pool = toPool(lane);
    const redis = findSlot(this.#redis, lane.tenantId);
    const [place, admitted] = await Promise.all([redis.lpos(keyOf.line(pool), lane.sessionId), redis.scard(keyOf.admitted(pool))]);
    if (place !== null) return { ...waitingIn(lane, turnId, 1), reason: 'tenant_share', ahead: place, admitted };
    return findWaiting({ ...lane, length: 1 }, seen)[0];
  }
}

type Undated = Omit<WaitingTurns, 'sinceMs'>;

/** The lines in which conversations wait for the shares of their tenants. */
async function readLines(redis: Redis, pools: readonly string[], lanesMax: number): Promise<{ waiting: Undated[]; isWhole: boolean }> {
  const waiting: Undated[] = [];
  let left = lanesMax;
  let isWhole = true;
  const lengths = await Promise.all(pools.map(async (pool) => redis.llen(keyOf.line(pool))));
  for (const [index, pool] of pools.entries()) {
    const length = lengths[index] ?? 0;
    if (length === 0) continue;
    const named = Math.min(length, left);
    isWhole &&= named === length;
    left -= named;
    const [sessions, admitted] = await Promise.all([
      named === 0 ? [] : redis.lrange(keyOf.line(pool), 0, named - 1),
      redis.scard(keyOf.admitted(pool)),
    ]);
    const tenantId = pool.split('@', 1)[0] ?? pool;
    const lanes = await readLanes(
      redis,
      sessions.map((sessionId) => ({ tenantId, sessionId })),
    );
    for (const [ahead, lane] of lanes.entries()) {
      const [head = '', next] = lane.first;
      waiting.push({ ...waitingIn(lane, head, 1), reason: 'tenant_share', ahead, admitted });
      if (next !== undefined) waiting.push({ ...waitingIn(lane, next, lane.length - 1), reason: 'own_session', behind: head });
    }
  }
  return { waiting, isWhole };
}

function countByTenant(lanes: readonly LaneFacts[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { tenantId } of lanes) counts.set(tenantId, (counts.get(tenantId) ?? 0) + 1);
  return counts;
}

/** Adds when each was accepted. One that Redis no longer knows has ended meanwhile. */
async function date(redis: Redis, groups: readonly Undated[]): Promise<WaitingTurns[]> {
  const dated: WaitingTurns[] = [];
  for (let start = 0; start < groups.length; start += 500) {
    const some = groups.slice(start, start + 500);
    const times = await Promise.all(some.map(async ({ turnId }) => redis.hget(keyOf.turn(turnId), 'acceptedAt')));
    for (const [index, group] of some.entries()) {
      const sinceMs = times[index];
      if (sinceMs != null) dated.push({ ...group, sinceMs: Number(sinceMs) });
    }
  }
  return dated;
}

function toDelay(atMs: number | undefined, nowMs: number): number | undefined {
  return atMs === undefined ? undefined : Math.max(0, atMs - nowMs);
}

/** Member → score of an answer `WITHSCORES`. */
function toScores(entries: readonly string[]): Map<string, number> {
  const scores = new Map<string, number>();
  for (let index = 0; index < entries.length; index += 2) scores.set(entries[index] ?? '', Number(entries[index + 1]));
  return scores;
}

function waitingIn({ tenantId, sessionId, agent }: LaneFacts, turnId: string, count: number): Omit<Undated, 'reason'> {
  const unknown = { behind: undefined, isBehindRunning: false, dueInMs: undefined, ahead: undefined, admitted: undefined };
  return { tenantId, sessionId, agent, turnId, count, ...unknown };
}

function all(lane: LaneFacts, why: Pick<Undated, 'reason' | 'dueInMs'>): Undated[] {
  return [{ ...waitingIn(lane, lane.first[0] ?? '', lane.length), ...why }];
}

function isRunning({ first, leased, untilMs }: LaneFacts, nowMs: number): boolean {
  return leased !== undefined && leased === first[0] && untilMs > nowMs;
}

/** What waits in a lane that has a place in the share of its tenant. */
function findWaiting(lane: LaneFacts, { nowMs, hasWorkers, dueAtMs }: Seen & { readonly dueAtMs: number | undefined }): Undated[] {
  const [head = '', next] = lane.first;
  const runs = isRunning(lane, nowMs);
  const behind: Undated[] =
    next === undefined || lane.length < 2
      ? []
      : [{ ...waitingIn(lane, next, lane.length - 1), reason: 'own_session', behind: head, isBehindRunning: runs }];
  if (runs) return behind;
  // Given back with a wait, and not woken since: its next start has a time (lua/release.lua).
  if (lane.leased === head && lane.untilMs === 0 && lane.woken === 0)
    return [{ ...waitingIn(lane, head, 1), reason: 'paused', dueInMs: toDelay(dueAtMs, nowMs) }, ...behind];
  return [{ ...waitingIn(lane, head, 1), reason: hasWorkers ? 'no_free_slot' : 'no_worker' }, ...behind];
}
