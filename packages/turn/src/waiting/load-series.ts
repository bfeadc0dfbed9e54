import { seriesRanges, SeriesRange, WaitReason, type ProviderHealth, type SeriesPoint } from '@concierge/contract';
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
    for (const range of SeriesRange.options) {
      const { lengthMs, pointMs } = seriesRanges[range];
      const key = keyOf.series(range);
      const at = String(Math.floor(look.atMs / pointMs) * pointMs);
      const kept = Point.safeParse(JSON.parse((await this.#redis.hget(key, at)) ?? 'null')).data ?? noPoint;
      const old = (await this.#redis.hkeys(key)).filter((name) => Number(name) <= look.atMs - lengthMs);
      const change = this.#redis.multi().hset(key, at, JSON.stringify(merge(kept, sample)));
      if (old.length > 0) change.hdel(key, ...old);
      await change.pexpire(key, lengthMs).exec();
    }
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

  async #readPoints(range: SeriesRange): Promise<{ readonly atMs: number; readonly point: Point }[]> {
    const found = Object.entries(await this.#redis.hgetall(keyOf.series(range))).flatMap(([at, text]) => {
      const point = Point.safeParse(JSON.parse(text)).data;
      return point === undefined ? [] : [{ atMs: Number(at), point }];
    });
    return found.toSorted((one, other) => one.atMs - other.atMs);
  }

  /** What workers have done since the last sample, whichever process took it. */
  async #toSample({ waiting, workers, atMs }: WaitingLook): Promise<Point> {
    const key = keyOf.countedWorkers;
    const before = await this.#redis.hgetall(key);
    const now = workers.flatMap(({ id, counts }) => (counts === undefined ? [] : [[id, counts] as const]));
    let counts = noCounts;
    for (const [id, all] of now) {
      const known = TurnCounts.safeParse(JSON.parse(before[id] ?? 'null')).data;
      // The first sample of all does not know when what it sees was done.
      if (known !== undefined || Object.keys(before).length > 0) counts = addCounts(counts, addCounts(all, known ?? noCounts, -1));
    }
    const change = this.#redis.multi().del(key).hset(key, 'sampled', '1');
    for (const [id, all] of now) change.hset(key, id, JSON.stringify(all));
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
