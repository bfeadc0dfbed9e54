import { HOUR_MS } from '@concierge/contract';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import type { Redis } from 'ioredis';
import { eventually, silentLog as log, TestRedis } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';
import { DeliveryPace, DueQueue, keyOf, openDeliveryQueue, queuePrefix, readClocks, type Lanes } from '../src/index.ts';
import { RENEW_EVERY_MS } from '../src/lanes/lanes.ts';
import { claimTask, takeTask } from '../src/due/reconciler.ts';
import { enqueuedTurn, TestLanes } from './test-lanes.ts';
import { input, parse, TestTurns } from './test-turns.ts';

const lane = { tenantId: 'acme', sessionId: 's1' };

describe('the clock of a machine', () => {
  afterEach(() => {
    jest.restoreAllMocks();
  });

  it.each([HOUR_MS, -HOUR_MS])('that is %i ms off leaves a turn its time', async (off) => {
    await using fixture = await TestTurns.start();
    const scope = await fixture.scope();
    const right = Date.now.bind(Date);
    jest.spyOn(Date, 'now').mockImplementation(() => right() + off);
    fixture.play = async (run) => {
      const began = performance.now();
      await eventually(() => performance.now() > began + 50);
      return run.signal.aborted ? 'stopped' : 'whole';
    };
    await fixture.worker();
    const { turnId, sessionId } = await fixture.turns.accept(scope, input('x'));
    expect(parse(await fixture.read(scope, turnId)).at(-1)).toMatchObject({ type: 'done', data: { finishReason: 'stop' } });
    expect((await scope.sessions.load(sessionId))?.messages.at(-1)).toMatchObject({ text: 'whole' });
  });

  it.each([0, HOUR_MS, -HOUR_MS])('that is %i ms off is told by no more than that, however late Redis answers', async (off) => {
    await using server = await TestRedis.start();
    await using clearing = new AsyncDisposableStack();
    const redis = server.client();
    clearing.defer(() => redis.disconnect());
    await redis.ping();
    const right = Date.now.bind(Date);
    jest.spyOn(Date, 'now').mockImplementation(() => right() + off);
    server.freeze();
    const reading = readClocks(redis);
    const began = performance.now();
    await eventually(() => performance.now() > began + 2000);
    server.thaw();
    const { aheadMs } = await reading;
    expect(Math.abs(aheadMs)).toBeLessThanOrEqual(Math.abs(off));
    expect(Math.sign(aheadMs)).toBe(Math.sign(off));
  });

  it('that is an hour ahead does not keep the reconciler from what its gateway has accepted', async () => {
    await using fixture = await TestTurns.start();
    const scope = await fixture.scope();
    const ahead = await fixture.gateway({ now: () => Date.now() + HOUR_MS, refuses: new Promise(() => undefined) });
    const { turnId } = await ahead.accept(scope, input('x'));
    await fixture.worker();
    fixture.reconciler.start();
    expect(parse(await fixture.read(scope, turnId)).at(-1)?.type).toBe('done');
  });
});

describe('when the clock of Redis is set', () => {
  let fixture: TestLanes;
  let redis: Redis;
  let lanes: Lanes;

  setUpEach(async (stack) => {
    fixture = stack.use(await TestLanes.start());
    ({ redis, lanes } = fixture);
    await fixture.empty();
    await lanes.readiness({ notesTime: true });
  });

  /**
   * What was written before is that much later than the clock, as if it had been set back; earlier for less than
   * nothing.
   */
  async function setBack(byMs: number): Promise<void> {
    await redis.hincrby(`${queuePrefix}:clock`, 'last', byMs);
    await redis.hincrby(keyOf.lease(lane), 'until', byMs);
    await redis.zincrby(keyOf.due, byMs, 'acme/s1');
  }

  it('back, a dead worker’s turn is taken over when its lease has passed all the same', async () => {
    await fixture.place(enqueuedTurn('s1'));
    const { turnId } = await fixture.take('s1');
    await setBack(HOUR_MS);
    const woken = await eventually(async () => {
      await lanes.readiness({ notesTime: true });
      const wakeups = await lanes.sweep(10);
      return wakeups.length > 0 && wakeups;
    });
    expect(woken).toMatchObject([{ turnId }]);
    expect((await fixture.take('s1')).turnId).toBe(turnId);
  });

  it('forward, a living worker keeps its lease', async () => {
    await fixture.place(enqueuedTurn('s1'));
    const lease = await fixture.take('s1');
    await setBack(-HOUR_MS);
    expect(await lanes.sweep(10)).toEqual([]);
    expect(await lanes.lease({ ...lane, depth: 0 }, 'other')).toEqual({ kind: 'held' });
    expect((await lanes.renew([lease])).lost).toEqual([]);
  });

  it('forward, or when it hung, a worker keeps the lease that it was about to renew', async () => {
    await fixture.place(enqueuedTurn('s1'));
    const lease = await fixture.take('s1');
    await redis.hincrby(keyOf.lease(lane), 'until', -RENEW_EVERY_MS);
    await setBack(-10_000);
    expect(await lanes.sweep(10)).toEqual([]);
    expect(await lanes.lease({ ...lane, depth: 0 }, 'other')).toEqual({ kind: 'held' });
    expect((await lanes.renew([lease])).lost).toEqual([]);
  });

  it('forward, a turn is as old as the time in which it was seen', async () => {
    await fixture.place(enqueuedTurn('s1'));
    await lanes.release(await fixture.take('s1'), { waitMs: 0, charged: false });
    await redis.hincrby(keyOf.turn((await redis.lindex(keyOf.lane(lane), 0)) ?? ''), 'began', -HOUR_MS);
    await setBack(-HOUR_MS);
    expect((await fixture.take('s1')).ageMs).toBeLessThan(10_000);
  });

  it('back, what is done by one of many is done again soon', async () => {
    expect(await takeTask(redis, 'task', { forMs: 1000 })).toBe(true);
    await redis.set('task', Number(await redis.get('task')) + HOUR_MS);
    await redis.hincrby(`${queuePrefix}:clock`, 'last', HOUR_MS);
    expect(await takeTask(redis, 'task', { forMs: 1000 })).toBe(false);
    await eventually(async () => {
      await lanes.readiness({ notesTime: true });
      return await takeTask(redis, 'task', { forMs: 1000 });
    });
  });

  it('forward, a task is kept by who has it until another has taken it, and only by that one then', async () => {
    const holds = await claimTask(redis, 'task', { forMs: HOUR_MS });
    expect(await claimTask(redis, 'task', { forMs: HOUR_MS })).toBe(0);
    await redis.hincrby(`${queuePrefix}:clock`, 'last', 2 * HOUR_MS);
    const kept = await claimTask(redis, 'task', { forMs: HOUR_MS, holds });
    expect(kept).toBeGreaterThan(holds + HOUR_MS);
    await redis.hincrby(`${queuePrefix}:clock`, 'last', 2 * HOUR_MS);
    const taken = await claimTask(redis, 'task', { forMs: HOUR_MS });
    expect(taken).toBeGreaterThan(kept);
    expect(await claimTask(redis, 'task', { forMs: HOUR_MS, holds: kept })).toBe(0);
    await claimTask(redis, 'task', { forMs: 0, holds: taken });
    expect(await takeTask(redis, 'task', { forMs: HOUR_MS })).toBe(true);
  });

  it('back, a conversation whose sender died is sent in again, and a paused one waits no longer', async () => {
    const [pace, queue] = [new DeliveryPace(redis), openDeliveryQueue(redis, log)];
    const place = { tenantId: 'acme', lane: 'l1' };
    const key = { tenantId: 'acme', name: 'l1' };
    await queue.add([{ ...key, delayMs: 0 }]);
    await queue.claimOne(key);
    await pace.hold({ tenantId: 'acme', channel: 'channel_a' }, 500);
    const rules = { conversationIntervalMs: 1, conversationBurst: 1, bindingPerSecond: 1000 };
    // Almost over, on the clock that was.
    await redis.zincrby(`${keyOf.dueWork('deliveries')}:claimed`, HOUR_MS - 9500, 'acme/l1');
    await redis.incrby(keyOf.throttledUntil('acme/channel_a'), HOUR_MS);
    await redis.hincrby(`${queuePrefix}:clock`, 'last', HOUR_MS);
    expect(await queue.claimOne(key)).toBeUndefined();
    expect(await pace.pace(place, 'channel_a', rules)).toBeGreaterThan(0);
    await eventually(async () => {
      await lanes.readiness({ notesTime: true });
      return (await queue.claimOne(key)) !== undefined;
    });
    await eventually(async () => {
      await lanes.readiness({ notesTime: true });
      return (await pace.pace(place, 'channel_a', rules)) === 0;
    });
    await queue.stop();
  });
});

describe('a replica of cron whose clock is an hour ahead', () => {
  const key = { tenantId: 'acme', name: 'sch_1' };

  function openQueue({ redis }: TestLanes, clockOffMs: number): DueQueue {
    const clock = (): number => Date.now() + clockOffMs;
    return new DueQueue({ redis, kind: 'schedules', wakes: false, clock, claimMs: 5000, log });
  }

  it('leaves what it has claimed to the others when it dies', async () => {
    await using fixture = await TestLanes.start();
    const [ahead, due] = [openQueue(fixture, HOUR_MS), openQueue(fixture, 0)];
    await due.addAll([key]);
    expect((await ahead.claim(10)).claims).toMatchObject([key]);
    expect((await due.claim(10)).claims).toEqual([]);
    const claim = await eventually(async () => (await due.claim(10)).claims[0]);
    expect(claim).toMatchObject(key);
    await due.plan(claim, null);
    expect((await openQueue(fixture, 2 * HOUR_MS).claim(10)).claims).toEqual([]);
  });

  it('does not keep from the others what it calls for', async () => {
    await using fixture = await TestLanes.start();
    await openQueue(fixture, 0).add([{ ...key, delayMs: 0 }]);
    expect((await openQueue(fixture, -HOUR_MS).claim(10)).claims).toMatchObject([key]);
  });
});
