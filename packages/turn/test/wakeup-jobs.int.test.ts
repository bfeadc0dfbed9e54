import { Queue } from 'bullmq';
import { expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { silentLog as log, eventually } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';
import { Lanes, queuePrefix, WakeupQueue } from '../src/index.ts';
import { keptWakeups, takeWakeups } from '../src/lanes/wakeup-queue.ts';
import { enqueuedTurn } from './test-lanes.ts';
import { input, TestTurns } from './test-turns.ts';

let fixture: TestTurns;
let redis: Redis;

setUpEach(async (stack) => {
  fixture = stack.use(await TestTurns.start());
  redis = fixture.server.client();
  stack.defer(() => redis.disconnect());
});

const queue = `${queuePrefix}:turns`;
/** Differ from one job to the next. */
const times = { timestamp: expect.any(String), processedOn: expect.any(String), finishedOn: expect.any(String) };

async function readJob(id: string): Promise<Record<string, unknown>> {
  const { data = '{}', opts = '{}', ...fields } = await redis.hgetall(`${queue}:${id}`);
  return { ...fields, data: JSON.parse(data), opts: JSON.parse(opts) };
}

async function readState(): Promise<Record<string, unknown>> {
  const keys = await redis.keys(`${queue}:*`);
  return {
    keys: keys.map((key) => key.slice(queue.length)).toSorted(),
    active: await redis.llen(`${queue}:active`),
    completed: await redis.zcard(`${queue}:completed`),
    marker: await redis.zrange(`${queue}:marker`, '0', '-1', 'WITHSCORES'),
  };
}

it('a wake-up that a script has sent is the job that BullMQ itself adds', async () => {
  const turn = enqueuedTurn('s1');
  const wakeups = new WakeupQueue(redis, log);
  await new Lanes(redis).enqueue(turn, { busy: 'queue', found: 'accepted' });
  const [id = ''] = await redis.zrange(`${queue}:prioritized`, '0', '0');
  expect(id).toMatch(new RegExp(`^${turn.turnId}\\.\\d+$`, 'u'));
  const [sent, score] = [await readJob(id), await redis.zscore(`${queue}:prioritized`, id)];
  await redis.del(`${queue}:${id}`, `${queue}:prioritized`, `${queue}:marker`, `${queue}:pc`);
  const at = Number(id.split('.')[1]);
  await wakeups.wake([{ tenantId: 'acme', sessionId: 's1', turnId: turn.turnId, backlog: 1, at, depth: 0 }]);
  expect(sent).toEqual({ ...(await readJob(id)), timestamp: expect.any(String) });
  expect(score).toBe(await redis.zscore(`${queue}:prioritized`, id));
  expect(await redis.zrange(`${queue}:marker`, '0', '-1', 'WITHSCORES')).toEqual(['0', '0']);
  await wakeups.stop();
});

it('a wake-up that ended with its turn is left as BullMQ itself leaves a completed job', async () => {
  const scope = await fixture.scope();
  await fixture.worker();
  const { turnId } = await fixture.turns.accept(scope, input('x'));
  await fixture.read(scope, turnId);
  await eventually(async () => (await redis.zcard(`${queue}:completed`)) === 1);
  const [id = ''] = await redis.zrange(`${queue}:completed`, '0', '0');
  const [ended, state] = [await readJob(id), await readState()];
  expect(ended).toMatchObject({ ...times, returnvalue: 'null', atm: '1' });

  await redis.flushall();
  const wakeups = new WakeupQueue(redis, log);
  await wakeups.wake([{ tenantId: 'acme', sessionId: 's1', turnId, backlog: 1, at: Number(id.split('.')[1]), depth: 0 }]);
  await using stack = new AsyncDisposableStack();
  stack.defer(async () => wakeups.stop());
  const worker = takeWakeups({
    redis: stack.adopt(fixture.blocking(), (own) => own.disconnect()),
    depth: 0,
    concurrency: 1,
    log,
    answer: async () => Promise.resolve(),
  });
  stack.defer(async () => worker.close());
  void worker.run();
  await eventually(async () => (await redis.zcard(`${queue}:completed`)) === 1);
  expect({ ...ended, data: {} }).toEqual({ ...(await readJob(id)), ...times, data: {} });
  expect(state).toMatchObject({ active: 0, completed: 1 });
});

it('answered wake-ups are kept for the dashboards, and not more of them than they need', async () => {
  const old = Array.from({ length: keptWakeups + 100 }, (_, index) => `old.${String(index)}`);
  const commands = redis.pipeline();
  for (const [index, id] of old.entries()) commands.zadd(`${queue}:completed`, index, id).hset(`${queue}:${id}`, 'name', 'turn');
  await commands.exec();
  const scope = await fixture.scope();
  await fixture.worker();
  const { turnId } = await fixture.turns.accept(scope, input('x'));
  await fixture.read(scope, turnId);
  await eventually(async () => (await redis.zcard(`${queue}:completed`)) === keptWakeups);
  expect(await redis.exists(`${queue}:old.0`)).toBe(0);
  expect(await redis.exists(`${queue}:old.${String(keptWakeups)}`)).toBe(1);
  await using board = new AsyncDisposableStack();
  const shown = board.adopt(new Queue('turns', { connection: redis, prefix: queuePrefix }), async (open) => open.close());
  const [newest] = await shown.getCompleted(0, 0);
  expect(newest).toMatchObject({ name: 'turn', data: { turnId }, returnvalue: null });
});
