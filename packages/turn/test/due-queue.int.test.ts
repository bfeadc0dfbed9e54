import { HOUR_MS } from '@concierge/contract';
import { describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { connectRedis } from '@concierge/runtime';
import { eventually, gate, silentLog as log, TestRedis } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';
import type { DueHandler } from '../src/due/due-worker.ts';
import { DueQueue, DueWorker, keyOf, queuePrefix } from '../src/index.ts';

const ann = { tenantId: 'acme', name: 'ann' };
const bob = { tenantId: 'acme', name: 'bob' };

let server: TestRedis;
let redis: Redis;
let queue: DueQueue;
let closing: AsyncDisposableStack;
/** Where service time was held. */
let heldMs: number | undefined;

setUpEach(async (stack) => {
  closing = stack;
  heldMs = undefined;
  server = closing.use(await TestRedis.start());
  redis = connectRedis({ url: server.url, role: 'worker', log });
  closing.defer(() => redis.disconnect());
  queue = open();
});

/** The objects of one process. */
function open({ claimMs = 10_000, wakes = true } = {}): DueQueue {
  const opened = new DueQueue({ redis, kind: 'letters', claimMs, wakes, log });
  closing.defer(async () => await opened.stop());
  return opened;
}

/** Service time is so much later than at the first call, and stands still: how slow the machine is does not matter. */
async function later(ms: number): Promise<void> {
  heldMs ??= Date.now();
  // As by a clock that was set far back: service time waits until the clock has caught up.
  await redis.hset(`${queuePrefix}:clock`, { last: heldMs + ms, shift: -HOUR_MS });
}

function worker(handle: DueHandler, { concurrency = 4, from = queue } = {}): DueWorker {
  const made = new DueWorker({ queue: from, handle, concurrency, afterFailureMs: 50, log });
  made.start();
  closing.defer(async () => await made.stop(0));
  return made;
}

describe('a member', () => {
  it('is claimed when it is due, by one, and not before', async () => {
    await queue.add([{ ...ann, delayMs: 60_000 }]);
    expect(await queue.claim(10)).toMatchObject({ claims: [], nextInMs: expect.any(Number) });
    expect(await queue.claimOne(ann)).toBeUndefined();
    await later(61_000);
    const claims = await Promise.all([queue.claimOne(ann), open().claimOne(ann), queue.claim(10)]);
    expect(claims.map((claim) => claim !== undefined && (!('claims' in claim) || claim.claims.length > 0)).filter(Boolean)).toHaveLength(1);
  });

  it('is processed at the sooner of two times', async () => {
    await queue.add([{ ...ann, delayMs: HOUR_MS }]);
    await queue.add([{ ...ann, delayMs: 60_000 }]);
    await queue.add([{ ...ann, delayMs: HOUR_MS }]);
    await later(61_000);
    expect(await queue.claimOne(ann)).toMatchObject(ann);
  });

  it('that is known stays as it is when only new ones are added', async () => {
    await queue.add([{ ...ann, delayMs: HOUR_MS }]);
    await queue.add(
      [
        { ...ann, delayMs: 0 },
        { ...bob, delayMs: 0 },
      ],
      { onlyNew: true },
    );
    expect((await queue.claim(10)).claims).toMatchObject([bob]);
    await queue.add([{ ...bob, delayMs: 0 }], { onlyNew: true });
    const [claim] = [await queue.claimOne(bob)];
    expect(claim).toBeUndefined();
  });

  it('that is added while it is claimed is processed again, by one at a time', async () => {
    await later(0);
    await queue.add([{ ...ann, delayMs: 0 }]);
    const claim = await queue.claimOne(ann);
    await queue.add([{ ...ann, delayMs: 0 }]);
    expect(await queue.claimOne(ann)).toBeUndefined();
    expect((await queue.claim(10)).claims).toEqual([]);
    expect(claim !== undefined && (await queue.plan(claim, null))).toBe(true);
    expect(await queue.claimOne(ann)).toMatchObject(ann);
  });

  it('is gone when nothing is left to come', async () => {
    await queue.add([{ ...ann, delayMs: 0 }]);
    const claim = await queue.claimOne(ann);
    if (claim !== undefined) await queue.plan(claim, null);
    expect(await queue.claim(10)).toEqual({ claims: [], nextInMs: null });
    expect(await redis.exists(keyOf.dueWork('letters'), `${queuePrefix}:due-of:acme/letters`)).toBe(0);
  });
});

describe('a claim', () => {
  it('of a process that is gone is another’s after a while, with a higher number, and its own writes are refused', async () => {
    await later(0);
    await queue.add([{ ...ann, delayMs: 0 }]);
    const first = await queue.claimOne(ann);
    await later(9000);
    expect(await queue.claimOne(ann)).toBeUndefined();
    await later(11_000);
    const second = await queue.claimOne(ann);
    if (first === undefined || second === undefined) throw new Error('two claims');
    expect(second.number).toBeGreaterThan(first.number);
    expect(await queue.keep(first)).toBe(false);
    expect(await queue.plan(first, null)).toBe(false);
    expect(await queue.keep(second)).toBe(true);
  });

  it('has a higher number than those from before Redis was emptied', async () => {
    await queue.add([{ ...ann, delayMs: 0 }]);
    const before = await queue.claimOne(ann);
    await redis.flushall();
    await queue.add([{ ...ann, delayMs: 0 }]);
    const after = await queue.claimOne(ann);
    expect(after?.number).toBeGreaterThan(before?.number ?? Infinity);
    expect(before !== undefined && (await queue.plan(before, null))).toBe(false);
  });

  it('that is kept does not end', async () => {
    await later(0);
    await queue.add([{ ...ann, delayMs: 0 }]);
    const claim = await queue.claimOne(ann);
    await later(9000);
    expect(claim !== undefined && (await queue.keep(claim))).toBe(true);
    await later(18_000);
    expect(await queue.claimOne(ann)).toBeUndefined();
  });
});

describe('a worker', () => {
  it('is woken when there is work, and again at the time that it returns', async () => {
    const looks: number[] = [];
    worker(async () => {
      looks.push(performance.now());
      return Promise.resolve(looks.length < 3 ? 20 : null);
    });
    await queue.add([{ ...ann, delayMs: 0 }]);
    await eventually(() => looks.length === 3);
    expect(await eventually(async () => (await queue.unknown([ann])).length === 1 && looks.length)).toBe(3);
  });

  it('looks again after a failure', async () => {
    let looks = 0;
    worker(async () => {
      looks += 1;
      return looks === 1 ? Promise.reject(new Error('disk full')) : Promise.resolve(null);
    });
    await queue.add([{ ...ann, delayMs: 0 }]);
    await eventually(() => looks === 2);
    expect(await eventually(async () => (await queue.unknown([ann])).length === 1 && looks)).toBe(2);
  });

  it('goes on although Redis was emptied while it worked', async () => {
    let looks = 0;
    worker(async () => {
      looks += 1;
      if (looks > 1) return null;
      await redis.del(`${keyOf.dueWork('letters')}:claimed`, `${keyOf.dueWork('letters')}:numbers`);
      return 0;
    });
    await queue.add([{ ...ann, delayMs: 0 }]);
    await eventually(() => looks === 2);
    expect(await eventually(async () => (await queue.unknown([ann])).length === 1 && looks)).toBe(2);
  });

  it('polls for due members where there are no wake-ups', async () => {
    const quiet = open({ wakes: false });
    const seen: string[] = [];
    const polling = worker(async ({ name }) => Promise.resolve(void seen.push(name)).then(() => null), { from: quiet });
    await quiet.add([ann, bob].map((key) => ({ ...key, delayMs: 0 })));
    await polling.poll();
    expect(seen.toSorted((a, b) => a.localeCompare(b))).toEqual(['ann', 'bob']);
  });

  it('is woken for what was lost: the wake-up, or the worker that had it', async () => {
    await queue.add([ann, bob].map((key) => ({ ...key, delayMs: 0 })));
    expect(await queue.claimOne(bob)).toMatchObject(bob);
    await queue.queues[0]?.obliterate({ force: true });
    const seen: string[] = [];
    worker(async ({ name }) => Promise.resolve(void seen.push(name)).then(() => null));
    await later(11_000);
    await queue.wakeLate();
    await eventually(() => seen.length === 2);
    expect(seen.toSorted((a, b) => a.localeCompare(b))).toEqual(['ann', 'bob']);
  });

  it('serves a tenant with little to do before one with much', async () => {
    const crowd = Array.from({ length: 30 }, (_, index) => ({ tenantId: 'loud', name: String(index), delayMs: 0 }));
    for (const member of crowd) await queue.add([member]);
    await queue.add([{ tenantId: 'quiet', name: 'one', delayMs: 0 }]);
    const seen: string[] = [];
    worker(async ({ tenantId }) => Promise.resolve(void seen.push(tenantId)).then(() => null), { concurrency: 1 });
    await eventually(() => seen.includes('quiet'));
    // Only the first of the others was as urgent.
    expect(seen.indexOf('quiet')).toBeLessThanOrEqual(1);
  });

  it('that stops finishes what it is doing', async () => {
    const begun = gate();
    const opened = gate();
    let isDone = false;
    const stopping = worker(async () => {
      begun.open();
      await opened.opened;
      isDone = true;
      return null;
    });
    await queue.add([{ ...ann, delayMs: 0 }]);
    await begun.opened;
    const stopped = stopping.stop(60_000);
    opened.open();
    await stopped;
    expect(isDone).toBe(true);
    expect((await queue.claim(1)).nextInMs).toBeNull();
  });
});
