import { beforeEach, describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { HOUR_MS, limits, type AcceptedTurn } from '@concierge/contract';
import { eventually } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import { keyOf, queuePrefix, RateLimits, type Lanes, type Lease, type Wakeup } from '../src/index.ts';
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

describe('a lane', () => {
  it('is woken for its first turn only and runs turns in order of acceptance', async () => {
    const [first, second] = [turn('s1'), turn('s1')];
    expect((await place(first)).map(({ turnId }) => turnId)).toEqual([first.turnId]);
    expect(await place(second)).toEqual([]);
    const lease = await take('s1');
    expect(lease.turnId).toBe(first.turnId);
    const wakeups = await fixture.finish(lease, { payload: 'x', state: 'done' });
    expect(wakeups?.map(({ turnId }) => turnId)).toEqual([second.turnId]);
    expect((await take('s1')).turnId).toBe(second.turnId);
  });

  it('is leased to one worker at a time', async () => {
    await place(turn('s1'));
    await take('s1');
    expect(await lanes.lease({ tenantId: 'acme', sessionId: 's1', depth: 0 }, 'other')).toEqual({ kind: 'held' });
  });

  it('knows a turn it has already', async () => {
    const given = turn('s1', { requestHash: 'abc' });
    await place(given);
    expect(await lanes.enqueue(given, { busy: 'queue', found: 'orphan' })).toEqual({
      kind: 'exists',
      state: 'waiting',
      requestHash: 'abc',
      sessionId: 's1',
    });
  });

  it('refuses when it is busy and the caller asked for that, and when it is full', async () => {
    await place(turn('s1'));
    expect(await lanes.enqueue(turn('s1'), { busy: 'reject', found: 'accepted' })).toEqual({ kind: 'busy' });
    for (let waiting = 0; waiting < limits.laneMaxWaiting; waiting += 1) await place(turn('s1'));
    expect(await lanes.enqueue(turn('s1'), { busy: 'queue', found: 'accepted' })).toEqual({ kind: 'full' });
    expect(await place(turn('s1'), 'orphan')).toEqual([]);
  });
});

describe('a share', () => {
  it('admits so many of a tenant at once and the next when one ends, another tenant beside it', async () => {
    await lanes.heartbeat({ id: 'w', share: 2, facts: {}, leaving: false });
    expect(await place(turn('s1'))).toHaveLength(1);
    expect(await place(turn('s2'))).toHaveLength(1);
    expect(await place(turn('s3'))).toHaveLength(0);
    expect(await place(turn('q1', { tenantId: 'quiet' }))).toHaveLength(1);
    const wakeups = await fixture.finish(await take('s1'), { payload: 'x', state: 'done' });
    expect(wakeups?.map(({ sessionId }) => sessionId)).toEqual(['s3']);
  });

  it('grows with the workers', async () => {
    await lanes.heartbeat({ id: 'w1', share: 2, facts: {}, leaving: false });
    await lanes.heartbeat({ id: 'w2', share: 2, facts: {}, leaving: false });
    for (let index = 0; index < 4; index += 1) expect(await place(turn(`s${String(index)}`))).toHaveLength(1);
    expect(await place(turn('s9'))).toHaveLength(0);
  });

  it('serves a lane with more turns after the other lanes of its tenant', async () => {
    await lanes.heartbeat({ id: 'w', share: 1, facts: {}, leaving: false });
    await place(turn('s1'));
    await place(turn('s1'));
    await place(turn('s2'));
    const wakeups = await fixture.finish(await take('s1'), { payload: 'x', state: 'done' });
    expect(wakeups?.map(({ sessionId }) => sessionId)).toEqual(['s2']);
  });
});

describe('a tenant with as many conversations in its line as may be', () => {
  const accept = async (given: AcceptedTurn, found: 'accepted' | 'orphan' = 'accepted'): Promise<string> =>
    (await lanes.enqueue(given, { busy: 'queue', found })).kind;

  it('gets no more of them, continues in those it has, and blocks no other tenant', async () => {
    const known = turn('known');
    await place(known);
    // As if so many had been accepted.
    await redis.eval("for n = 1, ARGV[1] do redis.call('RPUSH', KEYS[1], n) end", 1, `${queuePrefix}:line:acme`, limits.tenantMaxWaiting);
    expect(await accept(turn('new'))).toBe('full');
    expect(await accept(turn('known'))).toBe('enqueued');
    expect(await accept(turn('new', { tenantId: 'other' }))).toBe('enqueued');
    // It was accepted before, whatever Redis knew of it.
    expect(await accept(turn('old'), 'orphan')).toBe('enqueued');
  });
});

describe('a share of turns that others started', () => {
  const grant = (depth: number): { grant: NonNullable<AcceptedTurn['grant']> } => ({ grant: { parentTurnId: 't_0', depth, tools: [] } });

  it('is another one than that of the turns which wait for them, at each depth', async () => {
    await lanes.heartbeat({ id: 'w', share: 1, facts: {}, leaving: false });
    expect(await place(turn('parent'))).toMatchObject([{ depth: 0 }]);
    expect(await place(turn('child', grant(1)))).toMatchObject([{ depth: 1, backlog: 1 }]);
    expect(await place(turn('grandchild', grant(2)))).toMatchObject([{ depth: 2, backlog: 1 }]);
    for (const [session, depth] of [
      ['other', 0],
      ['sibling', 1],
      ['cousin', 2],
    ] as const)
      expect(await place(turn(session, depth === 0 ? {} : grant(depth)))).toEqual([]);
    await take('parent');
    const wakeups = await fixture.finish(await take('child', { depth: 1 }), { payload: 'x', state: 'done' });
    expect(wakeups).toMatchObject([{ sessionId: 'sibling', depth: 1 }]);
  });

  it('gives its place in a lane to a turn of another depth only through that one’s own line', async () => {
    await lanes.heartbeat({ id: 'w', share: 1, facts: {}, leaving: false });
    await place(turn('busy'));
    await place(turn('s1', grant(1)));
    const next = turn('s1');
    await place(next);
    await place(turn('s2', grant(1)));
    const wakeups = await fixture.finish(await take('s1', { depth: 1 }), { payload: 'x', state: 'done' });
    expect(wakeups?.map(({ sessionId }) => sessionId)).toEqual(['s2']);
    expect(await fixture.finish(await take('busy'), { payload: 'x', state: 'done' })).toMatchObject([{ turnId: next.turnId, depth: 0 }]);
    expect(await lanes.lease({ tenantId: 'acme', sessionId: 's1', depth: 1 }, 'w')).toEqual({ kind: 'idle', wakeups: [] });
    expect((await take('s1')).turnId).toBe(next.turnId);
  });

  it('is found again by a Redis that came back empty, whatever was enqueued first', async () => {
    await lanes.heartbeat({ id: 'w', share: 1, facts: {}, leaving: false });
    const [child, later] = [turn('s1', grant(1)), turn('s1')];
    await redis.flushall();
    await lanes.heartbeat({ id: 'w', share: 1, facts: {}, leaving: false });
    await place(later);
    await place(turn('s2'), 'emptied');
    await place(child, 'emptied');
    const wakeups = await fixture.open();
    expect(wakeups.toSorted((left, right) => left.depth - right.depth)).toMatchObject([
      { sessionId: 's2', depth: 0 },
      { sessionId: 's1', turnId: child.turnId, depth: 1 },
    ]);
    expect(await fixture.finish(await take('s1', { depth: 1 }), { payload: 'x', state: 'done' })).toEqual([]);
    expect(await fixture.finish(await take('s2'), { payload: 'x', state: 'done' })).toMatchObject([{ turnId: later.turnId, depth: 0 }]);
  });

  it('is reconciled at its own depth', async () => {
    await place(turn('s1', grant(2)));
    await redis.zadd(keyOf.due, 0, 'acme/s1');
    expect(await lanes.sweep(10)).toMatchObject([{ sessionId: 's1', depth: 2 }]);
    const lease = await take('s1', { depth: 2 });
    expect(await lanes.release(lease, { waitMs: 0, charged: false })).toMatchObject([{ sessionId: 's1', depth: 2 }]);
  });
});

describe('a lease', () => {
  it('lets no other worker write: neither entries nor an end', async () => {
    await place(turn('s1'));
    const lease = await take('s1');
    const stale = { ...lease, epoch: String(Number(lease.epoch) - 1) };
    expect(await fixture.append(stale, [{ seq: 1, type: 'text_delta', json: '{}' }])).toBe('lost');
    expect(await fixture.finish(stale, { payload: 'x', state: 'done' })).toBeNull();
    expect(await redis.xlen(keyOf.events(lease.turnId))).toBe(1);
  });

  it('takes a write that is sent twice as one', async () => {
    await place(turn('s1'));
    const lease = await take('s1');
    const entry = [{ seq: 1, type: 'text_delta', json: '{"delta":"a"}' }];
    expect(await fixture.append(lease, entry)).toBe('written');
    expect(await fixture.append(lease, entry)).toBe('written');
    expect(await redis.xlen(keyOf.events(lease.turnId))).toBe(2);
    expect(await fixture.finish(lease, { payload: 'x', state: 'done' })).toEqual([]);
    expect(await fixture.finish(lease, { payload: 'x', state: 'done' })).toEqual([]);
  });

  it('counts starts until a step is finished, and not those that were given back uncharged', async () => {
    await place(turn('s1'));
    expect((await take('s1')).starts).toBe(1);
    await redis.hset(keyOf.lease({ tenantId: 'acme', sessionId: 's1' }), 'until', 0);
    const second = await take('s1');
    expect(second).toMatchObject({ starts: 2, attempt: 2 });
    await lanes.release(second, { waitMs: 0, charged: false });
    const third = await take('s1');
    expect(third.starts).toBe(2);
    await fixture.append(third, [{ seq: 1, type: 'step', json: '{}' }], { progress: true });
    await lanes.release(third, { waitMs: 0, charged: true });
    expect((await take('s1')).starts).toBe(1);
  });

  it('has an epoch that rises over a Redis that came back empty, at once', async () => {
    const given = turn('s1');
    await place(given);
    const before = await take('s1');
    await redis.flushall();
    await place(given, 'emptied');
    await fixture.open();
    const after = await take('s1');
    expect(Number(after.epoch)).toBeGreaterThan(Number(before.epoch));
    expect(after.restored).toBe(true);
    expect(await fixture.append(before, [])).toBe('lost');
  });

  it('reports to a worker what it lost and what was cancelled', async () => {
    await place(turn('s1'));
    await place(turn('s2'));
    const [kept, lost] = [await take('s1'), await take('s2')];
    await lanes.cancel(kept);
    await redis.hset(keyOf.lease({ tenantId: 'acme', sessionId: 's2' }), 'epoch', '99');
    const renewed = await lanes.renew([kept, lost]);
    expect(renewed.lost).toEqual([lost]);
    expect(renewed.cancelled).toEqual([kept]);
  });
});

describe('the reconciler’s check of lanes', () => {
  it('repeats a wake-up that was not answered, later each time', async () => {
    const given = turn('s1');
    // As by a clock that was set far back: service time stands still, and no wake-up is late on a slow machine.
    await redis.hset(keyOf.clock, { last: Date.now(), shift: -HOUR_MS });
    await place(given);
    expect(await lanes.sweep(10)).toEqual([]);
    await redis.zadd(keyOf.due, 0, 'acme/s1');
    expect((await lanes.sweep(10)).map(({ turnId }) => turnId)).toEqual([given.turnId]);
    const soon = Number(await redis.zscore(keyOf.due, 'acme/s1'));
    await redis.zadd(keyOf.due, 0, 'acme/s1');
    await lanes.sweep(10);
    expect(Number(await redis.zscore(keyOf.due, 'acme/s1'))).toBeGreaterThan(soon);
  });

  it('leaves a lane whose worker lives and takes one whose lease has run out', async () => {
    await place(turn('s1'));
    await take('s1');
    await redis.zadd(keyOf.due, 0, 'acme/s1');
    expect(await lanes.sweep(10)).toEqual([]);
    await redis.hset(keyOf.lease({ tenantId: 'acme', sessionId: 's1' }), 'until', 1);
    await redis.zadd(keyOf.due, 0, 'acme/s1');
    expect(await lanes.sweep(10)).toHaveLength(1);
  });
});

describe('a Redis that came back empty', () => {
  it('runs nothing until every inbox is enqueued, and then in order of acceptance', async () => {
    const [old, middle, fresh] = [turn('s1'), turn('s1'), turn('s1')];
    await redis.flushall();
    expect(await place(fresh)).toEqual([]);
    expect(await place(middle, 'emptied')).toEqual([]);
    expect(await place(old, 'emptied')).toEqual([]);
    const wakeups = await fixture.open();
    expect(wakeups.map(({ turnId }) => turnId)).toEqual([old.turnId]);
    const order: string[] = [];
    await eventually(async () => {
      const lease = await take('s1');
      order.push(lease.turnId);
      await fixture.finish(lease, { payload: 'x', state: 'done' });
      return order.length === 3;
    });
    expect(order).toEqual([old.turnId, middle.turnId, fresh.turnId]);
  });

  it('keeps the order of turns that were accepted in one millisecond, whichever of them is found first', async () => {
    const atMs = Date.now();
    const [first, second, third] = [1, 2, 3].map((place) => turn('s1', { acceptedAtMs: atMs + place / 1000 }));
    await redis.flushall();
    for (const given of [third, first, second]) if (given !== undefined) await place(given, 'emptied');
    const placed = await redis.lrange(keyOf.lane({ tenantId: 'acme', sessionId: 's1' }), 0, -1);
    expect(placed).toEqual([first?.turnId, second?.turnId, third?.turnId]);
    await fixture.open();
  });
});

describe('a lane that is put in order', () => {
  const laneTurns = async (): Promise<string[]> => await redis.lrange(keyOf.lane({ tenantId: 'acme', sessionId: 's1' }), 0, -1);
  const lane = { tenantId: 'acme', sessionId: 's1' };

  it('has turns without a number first, as they stood, then the others by their numbers', async () => {
    const [late, plain, early, last] = [turn('s1'), turn('s1'), turn('s1'), turn('s1')];
    for (const given of [late, plain, early, last]) await place(given);
    expect(await lanes.order(lane, [early.turnId, late.turnId])).toEqual({ moved: false, wakeups: [] });
    expect(await laneTurns()).toEqual([plain, last, early, late].map(({ turnId }) => turnId));
    expect((await take('s1')).turnId).toBe(plain.turnId);
  });

  it('keeps the turn that another worker runs at its head', async () => {
    const [running, plain] = [turn('s1'), turn('s1')];
    for (const given of [running, plain]) await place(given);
    const lease = await take('s1');
    expect(await lanes.order(lane, [running.turnId])).toEqual({ moved: false, wakeups: [] });
    expect(await laneTurns()).toEqual([running.turnId, plain.turnId]);
    expect((await lanes.renew([lease])).lost).toEqual([]);
  });

  it('takes the caller’s lease back as if it had not been given, and sends a wake-up for the new head', async () => {
    const [later, earlier] = [turn('s1'), turn('s1')];
    for (const given of [later, earlier]) await place(given);
    const lease = await take('s1');
    const { moved, wakeups } = await lanes.order(lane, [earlier.turnId, later.turnId], lease);
    expect(moved).toBe(true);
    expect(wakeups.map(({ turnId }) => turnId)).toEqual([earlier.turnId]);
    expect(await fixture.append(lease, [])).toBe('lost');
    await fixture.finish(await take('s1'), { payload: 'x', state: 'done' });
    expect(await take('s1')).toMatchObject({ turnId: later.turnId, attempt: 1, starts: 1 });
  });

  it('stands in the line of its new head’s depth', async () => {
    await lanes.heartbeat({ id: 'w', share: 1, facts: {}, leaving: false });
    const grant = { parentTurnId: 't_0', depth: 1, tools: [] };
    const [child, person] = [turn('s1', { grant }), turn('s1')];
    for (const given of [child, person]) await place(given);
    const lease = await take('s1', { depth: 1 });
    const { moved, wakeups } = await lanes.order(lane, [person.turnId, child.turnId], lease);
    expect(moved).toBe(true);
    expect(wakeups).toMatchObject([{ turnId: person.turnId, depth: 0 }]);
    expect((await take('s1')).turnId).toBe(person.turnId);
    // The place at the other depth is free again.
    expect(await place(turn('s2', { grant }))).toHaveLength(1);
  });
});

describe('rate limits', () => {
  it('let exactly the limit through, from two connections at once', async () => {
    const other = fixture.server.client();
    const counters = [new RateLimits(redis), new RateLimits(other)];
    const beganMs = performance.now();
    const answers = await Promise.all(
      Array.from({ length: 60 }, async (_, index) => await counters[index % 2]?.take('acme', { limit: 20, windowSeconds: 3600 })),
    );
    const tookSeconds = Math.floor((performance.now() - beganMs) / 1000);
    other.disconnect();
    expect(answers.filter((answer) => answer?.allowed === true)).toHaveLength(20);
    const refused = answers.find((answer) => answer?.allowed === false);
    expect(refused?.remaining).toBe(0);
    expect(refused?.resetSeconds).toBeLessThanOrEqual(3600);
    // Less only by the whole seconds that have passed since the first was counted.
    expect(refused?.resetSeconds).toBeGreaterThanOrEqual(3600 - tookSeconds);
  });
});
