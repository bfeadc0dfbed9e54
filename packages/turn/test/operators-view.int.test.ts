import { describe, expect, it } from '@jest/globals';
import { connectRedis, keptLines } from '@concierge/runtime';
import { eventually, silentLog as log, TestRedis } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';
import { keyOf } from '../src/keys.ts';
import { Lanes, LogKeeper, readKeptLog, setDrained } from '../src/index.ts';
import { DrainWatch } from '../src/waiting/drained-workers.ts';

const DAY_MS = 24 * 3_600_000;
const LONG_LINE = 4000;

let server: TestRedis;
let redis: ReturnType<typeof connectRedis>;

setUpEach(async (stack) => {
  server = stack.use(await TestRedis.start());
  redis = connectRedis({ url: server.url, role: 'worker', log });
  stack.defer(() => redis.disconnect());
});

describe('the mark of a drained worker', () => {
  it('is renewed by the worker, however long it is drained, and outlives one that died by a week', async () => {
    const facts = { draining: false, stallMs: 0 };
    const watch = new DrainWatch({ redis, id: 'w_a', wakeups: [], log });
    // As a worker does: one that is silent for five seconds is in no list, and a machine may stand still for longer.
    const tell = async (isDrained: boolean) =>
      eventually(async () => {
        await new Lanes(redis).heartbeat({ id: 'w_a', share: 1, facts, leaving: false });
        return setDrained(redis, 'w_a', isDrained);
      });
    expect((await tell(true)).id).toBe('w_a');
    await redis.pexpire(keyOf.drained('w_a'), 60_000);
    await watch.look();
    expect(watch.isDrained).toBe(true);
    const leftMs = await redis.pttl(keyOf.drained('w_a'));
    expect(leftMs).toBeGreaterThan(6 * DAY_MS);
    expect(leftMs).toBeLessThanOrEqual(7 * DAY_MS);
    await tell(false);
    await watch.look();
    expect(watch.isDrained).toBe(false);
  });
});

describe('the kept log', () => {
  it('takes no more of Redis than its bytes, however long the lines are', async () => {
    const line = 'x'.repeat(LONG_LINE);
    for (let batch = 0; batch < 20; batch += 1) {
      const pipeline = redis.pipeline();
      for (let each = 0; each < 1000; each += 1) pipeline.xadd(keyOf.keptLog, '*', 'line', line);
      await pipeline.exec();
    }
    const keeper = new LogKeeper(redis, log);
    // What tests of other files have left in this process.
    keptLines.take();
    keeper.start();
    keptLines.add('{"level":50,"time":"2026-01-02T03:04:05.000Z","msg":"the newest"}\n');
    await eventually(async () => (await redis.xlen(keyOf.keptLog)) <= 10_001);
    await keeper.stop();
    const { lines } = await readKeptLog(redis, { level: 'info', limit: 10 });
    expect(lines.map(({ message }) => message)).toEqual(['the newest']);
  });

  it('is read over a line whose time is no date', async () => {
    for (const time of ['soon', '2026-01-02T03:04:05.000Z'])
      await redis.xadd(keyOf.keptLog, '*', 'line', JSON.stringify({ level: 50, time, msg: time }));
    const { lines } = await readKeptLog(redis, { level: 'info', limit: 10 });
    expect(lines.map(({ at }) => at)).toEqual(['2026-01-02T03:04:05.000Z']);
  });

  it('has nothing of a time in which Redis was away', async () => {
    const keeper = new LogKeeper(redis, log);
    await server.kill();
    await eventually(async () => redis.status !== 'ready');
    keeper.start();
    keptLines.add('{"level":50,"time":"2026-01-02T03:04:05.000Z","msg":"unheard"}\n');
    await keeper.stop();
    await server.start();
    await eventually(async () => redis.status === 'ready');
    expect(await redis.xlen(keyOf.keptLog)).toBe(0);
  });
});
