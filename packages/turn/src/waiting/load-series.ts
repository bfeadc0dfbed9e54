import { HOUR_MS, seriesRanges, SeriesRange, TENANT_TREND, WaitReason, type ProviderHealth, type SeriesPoint } from '@concierge/contract';
import type { Redis } from 'ioredis';
import { z } from 'zod';
import { keyOf } from '../keys.ts';
import type { WaitingLook } from './waiting-turns.ts';
import { addCounts, estimateQuantile, noCounts, TurnCounts } from './turn-counts.ts';

const count = z.int().nonnegative();
/** One point as it is kept. */
const Point = z.object({
  waiting: count,
  waitingBy: z.partialRecord(WaitReason, count).default({}),
  oldestMs: count,
  running: count,
  slots: count,
  counts: TurnCounts,
});
type Point = z.infer<typeof Point>;

const noPoint: Point = { waiting: 0, waitingBy: {}, oldestMs: 0, running: 0, slots: 0, counts: noCounts };
/** Waiting turns of those tenants that had the most of them, by tenant. */
const TenantPoint = z.record(z.string(), count);
const tenantSeries = { lengthMs: TENANT_TREND.points * TENANT_TREND.pointMs, pointMs: TENANT_TREND.pointMs };
/** Tenants of one point: what is kept does not grow with the deployment. */
const TENANTS_KEPT = 100;

/** What a worker had done when it was seen last, and when that was. */
const CountedWorker = TurnCounts.extend({ seenMs: z.number().default(0) });
type CountedWorker = z.infer<typeof CountedWorker>;
/**
 * One that stood still, or could not be asked for, comes back within this: what it had done before is not counted
 * again. One that is started again has another id.
 */
const AWAY_MAX_MS = HOUR_MS;

/** How much of the shortest range is what a provider did lately. */
const PROVIDERS_MS = 15 * 60_000;

/**
 * How it was over time: one sample every ten seconds, merged into the points of each range, in Redis. Lost with it, and
 * no truth of anything.
 */
export class LoadSeries {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /** Only one process at a time: it reads what it writes. */
  async add(look: WaitingLook): Promise<void> {
    const sample = await this.#toSample(look);
    for (const range of SeriesRange.options)
      await this.#mergePoint({ key: keyOf.series(range), ...seriesRanges[range] }, look.atMs, (kept) =>
        merge(Point.safeParse(kept).data ?? noPoint, sample),
      );
    if (look.waiting.length === 0) return;
    await this.#mergePoint({ key: keyOf.tenantSeries, ...tenantSeries }, look.atMs, (kept) =>
      mergeTenants(TenantPoint.safeParse(kept).data ?? {}, countByTenant(look)),
    );
  }

  /** Changes the point of this time, and removes those that are too old. */
  async #mergePoint({ key, lengthMs, pointMs }: StoredSeries, atMs: number, merged: (kept: unknown) => object): Promise<void> {
    const at = String(toPointStart(atMs, pointMs));
    const point = merged(JSON.parse((await this.#redis.hget(key, at)) ?? 'null'));
    const old = (await this.#redis.hkeys(key)).filter((name) => Number(name) <= atMs - lengthMs);
    const change = this.#redis.multi().hset(key, at, JSON.stringify(point));
    if (old.length > 0) change.hdel(key, ...old);
    await change.pexpire(key, lengthMs).exec();
  }

  /** Points of a range, the oldest first. */
  async read(range: SeriesRange): Promise<SeriesPoint[]> {
    return (await this.#readPoints(range)).map(({ atMs, point }) => toView(atMs, point));
  }

  /** What the providers did in the last 15 minutes, by name. */
  async readProviders(nowMs: number): Promise<ProviderHealth[]> {
    const recent = (await this.#readPoints('1h')).filter(({ atMs }) => atMs > nowMs - PROVIDERS_MS);
    const { providers } = recent.reduce((sum, { point }) => addCounts(sum, point.counts), noCounts);
    return Object.entries(providers)
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .map(([provider, { calls, failures, tookMs }]) => {
        const [p50Ms, p95Ms] = [estimateQuantile(tookMs, 0.5), estimateQuantile(tookMs, 0.95)];
        return { provider, calls, failures, p50Ms, p95Ms };
      });
  }

  /** How much waited of each tenant in the points of a trend, the oldest first. Of a tenant without one: nothing. */
  async readTenants(nowMs: number): Promise<ReadonlyMap<string, readonly number[]>> {
    const trends = new Map<string, number[]>();
    const endMs = toPointStart(nowMs, TENANT_TREND.pointMs);
    for (const { atMs, point } of await this.#readAll(keyOf.tenantSeries, TenantPoint)) {
      const index = TENANT_TREND.points - 1 - Math.round((endMs - atMs) / TENANT_TREND.pointMs);
      if (index < 0 || index >= TENANT_TREND.points) continue;
      for (const [tenantId, waiting] of Object.entries(point)) {
        const trend = trends.get(tenantId) ?? Array.from({ length: TENANT_TREND.points }, () => 0);
        trend[index] = waiting;
        trends.set(tenantId, trend);
      }
    }
    return trends;
  }

  async #readPoints(range: SeriesRange): Promise<{ readonly atMs: number; readonly point: Point }[]> {
    const found = await this.#readAll(keyOf.series(range), Point);
    return found.toSorted((one, other) => one.atMs - other.atMs);
  }

  async #readAll<Stored>(key: string, schema: z.ZodType<Stored>): Promise<{ readonly atMs: number; readonly point: Stored }[]> {
    return Object.entries(await this.#redis.hgetall(key)).flatMap(([at, text]) => {
      const point = schema.safeParse(JSON.parse(text)).data;
      return point === undefined ? [] : [{ atMs: Number(at), point }];
    });
  }

  /** What workers have done since the last sample, whichever process took it. */
  async #toSample({ waiting, workers, atMs }: WaitingLook): Promise<Point> {
    const key = keyOf.countedWorkers;
    const before = await this.#redis.hgetall(key);
    const counted = readCounted(before);
    let counts = noCounts;
    for (const { id, counts: all } of workers) {
      if (all === undefined) continue;
      // The first sample of all does not know when what it sees was done.
      if (Object.keys(before).length > 0) counts = addCounts(counts, addCounts(all, counted.get(id) ?? noCounts, -1));
      counted.set(id, { ...all, seenMs: atMs });
    }
    const change = this.#redis.multi().del(key).hset(key, 'sampled', '1');
    for (const [id, worker] of counted) if (atMs - worker.seenMs < AWAY_MAX_MS) change.hset(key, id, JSON.stringify(worker));
    await change.exec();
    const waitingBy: Point['waitingBy'] = {};
    for (const turns of waiting) waitingBy[turns.reason] = (waitingBy[turns.reason] ?? 0) + turns.count;
    return {
      waitingBy,
      waiting: waiting.reduce((sum, turns) => sum + turns.count, 0),
      oldestMs: Math.round(Math.max(0, ...waiting.map(({ sinceMs }) => atMs - sinceMs))),
      running: workers.reduce((sum, { turns }) => sum + turns.length, 0),
      slots: workers.reduce((sum, { concurrency, state }) => sum + (state === 'running' ? concurrency : 0), 0),
      counts,
    };
  }
}

/** By worker. */
function readCounted(stored: Readonly<Record<string, string>>): Map<string, CountedWorker> {
  return new Map(
    Object.entries(stored).flatMap(([id, text]) => {
      const worker = CountedWorker.safeParse(JSON.parse(text)).data;
      return worker === undefined ? [] : [[id, worker] as const];
    }),
  );
}

/** Where points are kept: by the time at which each begins. */
interface StoredSeries {
  readonly key: string;
  readonly lengthMs: number;
  readonly pointMs: number;
}

function toPointStart(atMs: number, pointMs: number): number {
  return Math.floor(atMs / pointMs) * pointMs;
}

function countByTenant({ waiting }: WaitingLook): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { tenantId, count: turns } of waiting) counts[tenantId] = (counts[tenantId] ?? 0) + turns;
  return counts;
}

/** The highest of each tenant, of those tenants for which it is highest. */
function mergeTenants(one: Readonly<Record<string, number>>, other: Readonly<Record<string, number>>): Record<string, number> {
  const most = { ...one };
  for (const [tenantId, turns] of Object.entries(other)) most[tenantId] = Math.max(most[tenantId] ?? 0, turns);
  const ordered = Object.entries(most).toSorted(([, left], [, right]) => right - left);
  return Object.fromEntries(ordered.slice(0, TENANTS_KEPT));
}

function merge(one: Point, other: Point): Point {
  return {
    waiting: Math.max(one.waiting, other.waiting),
    waitingBy: mergeReasons(one.waitingBy, other.waitingBy),
    oldestMs: Math.max(one.oldestMs, other.oldestMs),
    running: Math.max(one.running, other.running),
    slots: Math.max(one.slots, other.slots),
    counts: addCounts(one.counts, other.counts),
  };
}

function mergeReasons(one: Point['waitingBy'], other: Point['waitingBy']): Point['waitingBy'] {
  const most = { ...one };
  for (const reason of WaitReason.options) {
    const count = Math.max(one[reason] ?? 0, other[reason] ?? 0);
    if (count > 0) most[reason] = count;
  }
  return most;
}

function toView(atMs: number, { waiting, waitingBy, oldestMs, running, slots, counts }: Point): SeriesPoint {
  const { ended, failed, waitedMs, ranMs } = counts;
  return {
    at: new Date(atMs).toISOString(),
    waiting,
    waitingBy,
    oldestSeconds: oldestMs / 1000,
    running,
    slots,
    ended,
    failed,
    waitP50Ms: estimateQuantile(waitedMs, 0.5),
    waitP95Ms: estimateQuantile(waitedMs, 0.95),
    runP50Ms: estimateQuantile(ranMs, 0.5),
    runP95Ms: estimateQuantile(ranMs, 0.95),
  };
}
