import { MINUTE_MS } from '@concierge/contract';
import { connectRedis } from '@concierge/runtime';
import { silentLog as log, TestRedis } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';
import { describe, expect, it } from '@jest/globals';
import { keyOf, LoadSeries, type WaitingLook } from '../src/index.ts';

const nowMs = Date.parse('2026-11-20T12:00:30Z');

let redis: ReturnType<typeof connectRedis>;
let series: LoadSeries;

setUpEach(async (stack) => {
  const server = stack.use(await TestRedis.start());
  redis = connectRedis({ url: server.url, role: 'worker', log });
  stack.defer(() => redis.disconnect());
  series = new LoadSeries(redis);
});

/** A look at which this many turns of each tenant wait, in two conversations. */
function look(atMs: number, counts: Readonly<Record<string, number>>): WaitingLook {
  const waiting = Object.entries(counts).flatMap(([tenantId, count]) =>
    [count - 1, 1].map((turns, index) => ({
      tenantId,
      sessionId: `s${String(index)}`,
      reason: 'tenant_share' as const,
      turnId: `t_${String(index)}`,
      count: turns,
      agent: 'cs',
      sinceMs: atMs,
      behind: undefined,
      isBehindRunning: false,
      dueInMs: undefined,
      ahead: 0,
      admitted: 1,
    })),
  );
  return { waiting, running: new Map(), workers: [], share: 1, atMs, isWhole: true };
}

/** A look that sees workers with so many turns that have ended, by their ids. */
function lookAtWorkers(atMs: number, ended: Readonly<Record<string, number>>): WaitingLook {
  const facts = { version: '1', concurrency: 1, startedAt: new Date(nowMs).toISOString(), draining: false, isDrained: false };
  const none = { failed: 0, waitedMs: [], ranMs: [], providers: {} };
  const workers = Object.entries(ended).map(([id, count]) => ({
    ...facts,
    id,
    state: 'running' as const,
    counts: { ...none, ended: count },
    stallMs: 0,
    silentMs: 0,
    turns: [],
    isDemo: false,
  }));
  return { ...look(atMs, {}), workers };
}

describe('what workers have done', () => {
  it('counts once, also of one that was silent for a sample or began after the first', async () => {
    await series.add(lookAtWorkers(nowMs, { w_one: 5 }));
    await series.add(lookAtWorkers(nowMs + 10_000, { w_one: 7, w_two: 1 }));
    await series.add(lookAtWorkers(nowMs + 20_000, {}));
    await series.add(lookAtWorkers(nowMs + 30_000, { w_one: 8, w_two: 1 }));
    const points = await series.read('1h');
    expect(points.reduce((sum, { ended }) => sum + ended, 0)).toBe(4);
  });

  it('is forgotten of workers that are gone', async () => {
    await series.add(lookAtWorkers(nowMs, { w_gone: 5 }));
    await series.add(lookAtWorkers(nowMs + 61 * MINUTE_MS, {}));
    expect(await redis.hkeys(keyOf.countedWorkers)).toEqual(['sampled']);
  });
});

describe('how much of each tenant waited', () => {
  it('is kept for an hour, by minutes with the highest of each', async () => {
    await series.add(look(nowMs - 60 * MINUTE_MS, { acme: 9 }));
    await series.add(look(nowMs - 59 * MINUTE_MS, { acme: 7, other: 4 }));
    await series.add(look(nowMs - 10_000, { acme: 5 }));
    await series.add(look(nowMs, { acme: 3 }));
    const trends = await series.readTenants(nowMs);
    expect([...trends.keys()]).toEqual(['acme', 'other']);
    expect(trends.get('acme')).toEqual([7, ...Array.from({ length: 58 }, () => 0), 5]);
    expect(trends.get('other')).toEqual([4, ...Array.from({ length: 59 }, () => 0)]);
    expect(await redis.hlen(keyOf.tenantSeries)).toBe(2);
  });

  it('is kept of the hundred tenants with the most, and not for longer than an hour', async () => {
    const flood = Object.fromEntries(Array.from({ length: 150 }, (_, index) => [`tenant-${String(index)}`, index + 2]));
    await series.add(look(nowMs, flood));
    await series.add(look(nowMs + 1000, { late: 500 }));
    const trends = await series.readTenants(nowMs);
    expect(trends.size).toBe(100);
    expect(trends.get('late')?.at(-1)).toBe(500);
    expect([trends.has('tenant-50'), trends.has('tenant-51')]).toEqual([false, true]);
    const leftMs = await redis.pttl(keyOf.tenantSeries);
    expect(leftMs).toBeGreaterThan(0);
    expect(leftMs).toBeLessThanOrEqual(60 * MINUTE_MS);
  });

  it('costs nothing where nothing waits', async () => {
    await series.add(look(nowMs, {}));
    expect(await redis.exists(keyOf.tenantSeries)).toBe(0);
    expect((await series.readTenants(nowMs)).size).toBe(0);
  });
});
