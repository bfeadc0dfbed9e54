import { beforeEach, describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { limits } from '@concierge/contract';
import { setUpOnce } from '@concierge/testing/set-up';
import { keyOf, type Lanes, type Lease, type Wakeup } from '../src/index.ts';
import { enqueuedTurn as turn, TestLanes } from './test-lanes.ts';

let fixture: TestLanes;
let redis: Redis;
let lanes: Lanes;

setUpOnce(async (stack) => {
  fixture = stack.use(await TestLanes.start());
  ({ redis, lanes } = fixture);
});
beforeEach(async () => {
  await fixture.empty();
});

const place = async (...given: Parameters<TestLanes['place']>): Promise<Wakeup[]> => await fixture.place(...given);
const take = async (...lane: Parameters<TestLanes['take']>): Promise<Lease> => await fixture.take(...lane);

const collect = async (...given: Parameters<TestLanes['collect']>): ReturnType<TestLanes['collect']> => await fixture.collect(...given);

/** Makes a debounced lane due. */
async function due(sessionId: string): Promise<void> {
  await redis.zadd(keyOf.debounced, 0, `acme/${sessionId}`);
}

describe('a lane that is debounced', () => {
  const long = 60_000;

  it('is woken for its first turn when it is due, and has the others behind it', async () => {
    const turns = Array.from({ length: 5 }, () => turn('s1'));
    for (const given of turns) expect((await collect(given, long)).wakeups).toEqual([]);
    expect((await lanes.findDue()).wakeups).toEqual([]);
    await due('s1');
    expect(await lanes.findDue()).toMatchObject({ wakeups: [{ turnId: turns[0]?.turnId }], nextInMs: null });
    expect((await lanes.findDue()).wakeups).toEqual([]);
    const lease = await take('s1');
    expect(await lanes.waitingBehind(lease, 20)).toEqual(turns.slice(1).map(({ turnId }) => turnId));
    expect(await lanes.waitingBehind(lease, 2)).toEqual(turns.slice(1, 3).map(({ turnId }) => turnId));
    await fixture.finish(lease, { payload: 'x', state: 'done' });
    expect(await lanes.waitingBehind(lease, 20)).toEqual([]);
  });

  it('waits longer with each message, and at most four times as long as for one', async () => {
    const member = 'acme/s1';
    const held = keyOf.lease({ tenantId: 'acme', sessionId: 's1' });
    await collect(turn('s1'), long);
    const since = Number(await redis.hget(held, 'debouncedSince'));
    await redis.zadd(keyOf.debounced, since + 1, member);
    expect((await collect(turn('s1'), long)).dueInMs).toBe(long);
    expect(Number(await redis.zscore(keyOf.debounced, member))).toBeGreaterThanOrEqual(since + long);
    await redis.hset(held, 'debouncedSince', since - 4 * long + 1000);
    expect((await collect(turn('s1'), long)).dueInMs).toBeLessThanOrEqual(1000);
    expect(await redis.zscore(keyOf.debounced, member)).toBe(String(since + 1000));
    await due('s1');
    await lanes.findDue();
    await fixture.finish(await take('s1'), { payload: 'x', state: 'done' });
    // The next time is counted anew.
    expect(await redis.hexists(held, 'debouncedSince')).toBe(0);
  });

  it('reports when the next one is due', async () => {
    await collect(turn('s1'), long);
    await collect(turn('s2'), 2 * long);
    await due('s1');
    const { wakeups, nextInMs } = await lanes.findDue();
    expect(wakeups).toHaveLength(1);
    expect(nextInMs).toBeGreaterThan(long);
    expect(nextInMs).toBeLessThanOrEqual(2 * long);
  });

  it('runs at once when a message comes that is not to wait, whatever it is', async () => {
    for (const [session, busy] of [
      ['s1', 'queue'],
      ['s2', 'interrupt'],
      ['s3', 'collect'],
    ] as const) {
      const first = turn(session);
      await collect(first, long);
      const placed = await lanes.enqueue(turn(session), { busy, debounceMs: 0, found: 'accepted' });
      expect(placed).toMatchObject({ kind: 'enqueued', dueInMs: null });
      expect(await fixture.takeWakeups()).toMatchObject([{ turnId: first.turnId }]);
    }
    expect(await redis.zcard(keyOf.debounced)).toBe(0);
  });

  it('is not made when nothing is to be waited for, or something runs', async () => {
    expect(await collect(turn('s1'), 0)).toMatchObject({ wakeups: [{ sessionId: 's1' }], dueInMs: null });
    expect(await collect(turn('s1'), long)).toEqual({ wakeups: [], dueInMs: null });
    await fixture.finish(await take('s1'), { payload: 'x', state: 'done' });
    expect((await lanes.findDue()).nextInMs).toBeNull();
    await take('s1');
  });

  it('is busy for one that does not want to wait', async () => {
    await collect(turn('s1'), long);
    expect(await lanes.enqueue(turn('s1'), { busy: 'reject', found: 'accepted' })).toEqual({ kind: 'busy' });
  });

  it('takes nothing of the share, and is admitted through its line', async () => {
    await lanes.heartbeat({ id: 'w', share: 1, facts: {}, leaving: false });
    for (let index = 0; index < 3; index += 1) await collect(turn(`held${String(index)}`), long);
    expect(await place(turn('busy'))).toHaveLength(1);
    await due('held0');
    expect((await lanes.findDue()).wakeups).toEqual([]);
    const wakeups = await fixture.finish(await take('busy'), { payload: 'x', state: 'done' });
    expect(wakeups?.map(({ sessionId }) => sessionId)).toEqual(['held0']);
    expect(await lanes.lease({ tenantId: 'acme', sessionId: 'held1', depth: 0 }, 'w')).toEqual({ kind: 'idle', wakeups: [] });
  });

  it('keeps its place for the turns that were answered with its first one, and stands in line for the next', async () => {
    await lanes.heartbeat({ id: 'w', share: 1, facts: {}, leaving: false });
    const [first, second, third] = [turn('s1'), turn('s1'), turn('s1')];
    await collect(first, 0);
    for (const given of [second, third]) await collect(given, 0);
    await place(turn('s2'));
    const end = { payload: 'x', state: 'done', answered: [first.turnId, second.turnId] } as const;
    expect((await fixture.finish(await take('s1'), end))?.map(({ turnId }) => turnId)).toEqual([second.turnId]);
    // A lost wake-up is repeated.
    await redis.zadd(keyOf.due, 0, 'acme/s1');
    expect((await lanes.sweep(10)).map(({ turnId }) => turnId)).toEqual([second.turnId]);
    expect((await fixture.finish(await take('s1'), end))?.map(({ sessionId }) => sessionId)).toEqual(['s2']);
    const wakeups = await fixture.finish(await take('s2'), { payload: 'x', state: 'done' });
    expect(wakeups?.map(({ turnId }) => turnId)).toEqual([third.turnId]);
  });

  it('is not woken by the reconciler', async () => {
    await collect(turn('s1'), long);
    expect(await lanes.sweep(10)).toEqual([]);
    expect(await redis.zcard(keyOf.due)).toBe(0);
    expect(await redis.zscore(keyOf.debounced, 'acme/s1')).not.toBeNull();
  });

  it('becomes due when one of its turns is cancelled, once', async () => {
    const [first, second] = [turn('s1'), turn('s1')];
    await collect(first, long);
    await collect(second, long);
    expect((await lanes.cancel(first)).map(({ turnId }) => turnId)).toEqual([first.turnId]);
    expect(await lanes.cancel(second)).toEqual([]);
    expect(await take('s1')).toMatchObject({ turnId: first.turnId, cancelled: true });
  });

  it('takes more turns than one that runs them one by one, and refuses those beyond', async () => {
    const [alone, collecting] = [turn('s1'), turn('s1')];
    for (let count = 0; count <= limits.collectMaxWaiting; count += 1) await collect(turn('s1'), long);
    expect(await lanes.enqueue({ ...collecting, collects: true }, { busy: 'collect', debounceMs: long, found: 'accepted' })).toEqual({
      kind: 'full',
    });
    expect(await lanes.enqueue(alone, { busy: 'queue', found: 'accepted' })).toMatchObject({ kind: 'enqueued' });
    for (let count = 0; count < limits.laneMaxWaiting; count += 1) await place(turn('s1'));
    expect(await lanes.enqueue(turn('s1'), { busy: 'queue', found: 'accepted' })).toEqual({ kind: 'full' });
  });

  it('is forgotten by a Redis that was emptied, and what is enqueued again runs at once, in its order', async () => {
    const [first, second, fresh] = [turn('s1'), turn('s1'), turn('s1')];
    await collect(first, long);
    await collect(second, long);
    await redis.flushall();
    expect(await collect(fresh, long)).toEqual({ wakeups: [], dueInMs: null });
    for (const given of [second, first]) expect(await place({ ...given, collects: true }, 'emptied')).toEqual([]);
    expect(await lanes.findDue()).toEqual({ wakeups: [], nextInMs: null });
    expect((await fixture.open()).map(({ turnId }) => turnId)).toEqual([first.turnId]);
    expect(await lanes.waitingBehind(await take('s1'), 20)).toEqual([second.turnId, fresh.turnId]);
  });

  it('runs in order when only the `ready` flag of Redis was lost', async () => {
    const [first, second] = [turn('s1'), turn('s1')];
    await collect(second, long);
    await redis.del(keyOf.enqueued);
    await due('s1');
    expect((await lanes.findDue()).wakeups).toEqual([]);
    expect(await lanes.cancel(second)).toEqual([]);
    expect(await place({ ...first, acceptedAtMs: second.acceptedAtMs - 1 }, 'emptied')).toEqual([]);
    expect((await fixture.open()).map(({ turnId }) => turnId)).toEqual([first.turnId]);
    expect((await lanes.findDue()).wakeups).toEqual([]);
  });

  it('runs at once with a turn that was found without a lane', async () => {
    const first = turn('s1');
    await collect(first, long);
    expect((await place(turn('s1'), 'orphan')).map(({ turnId }) => turnId)).toEqual([first.turnId]);
  });

  it('is due at the depth of its head', async () => {
    await place(turn('s1', { grant: { parentTurnId: 't_0', depth: 1, tools: [] } }));
    await fixture.finish(await take('s1', { depth: 1 }), { payload: 'x', state: 'done' });
    await collect(turn('s1'), long);
    await due('s1');
    expect((await lanes.findDue()).wakeups).toMatchObject([{ depth: 0 }]);
  });
});
