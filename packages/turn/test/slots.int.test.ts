import { describe, expect, it } from '@jest/globals';
import { HOUR_MS } from '@concierge/contract';
import { ConfigError, openRedis, findSlot, listSlots, withSlots } from '@concierge/runtime';
import { eventually, RedisCluster, silentLog as log, temporaryDirectory, TestRedis, untilAborted } from '@concierge/testing';
import { listReconcilers } from '@concierge/testing/core';
import { setUpEach } from '@concierge/testing/set-up';
import { agreeOnSlots, assertSlots, isEmptyRedis, keyOf, ProcessAnnouncement } from '../src/index.ts';
import { claimTask } from '../src/due/reconciler.ts';
import { input, parse, TestTurns } from './test-turns.ts';

const WITHIN_MS = 60_000;
const SLOTS = 3;
const MINUTES = 60_000;

let cleanUp: AsyncDisposableStack;
setUpEach((stack) => {
  cleanUp = stack;
});

/** A tenant for each slot, in the order of the slots. */
function chooseTenants(redis: Parameters<typeof listSlots>[0]): string[] {
  const names = Array.from({ length: 100 }, (_, index) => `tenant-${String(index)}`);
  return listSlots(redis).map((slot) => names.find((name) => findSlot(redis, name) === slot) ?? '');
}

async function openTurns(redisUrl: string): Promise<{ fixture: TestTurns; tenants: readonly string[] }> {
  const fixture = cleanUp.use(await TestTurns.start({ redisUrl }));
  const core = await fixture.another('producer');
  for (const reconciler of listReconcilers(core)) {
    reconciler.start();
    cleanUp.defer(async () => reconciler.stop());
  }
  return { fixture, tenants: chooseTenants(core.redis) };
}

async function findProblem(trying: Promise<unknown>): Promise<string> {
  const error: unknown = await trying.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  return error instanceof ConfigError ? (error.problems[0] ?? '') : `no ConfigError: ${String(error)}`;
}

describe('tenants in several slots', () => {
  it('have their turns run and read, each in its own', async () => {
    const server = cleanUp.use(await TestRedis.start());
    const { fixture, tenants } = await openTurns(withSlots(server.url, SLOTS));
    await fixture.worker();
    for (const tenantId of tenants) {
      const scope = await fixture.scope(tenantId);
      const accepted = [await fixture.turns.accept(scope, input('one')), await fixture.turns.accept(scope, input('two'))];
      for (const { turnId } of accepted)
        expect(parse(await fixture.read(scope, turnId)).map(({ type }) => type)).toEqual(['session', 'text_delta', 'done']);
    }
    const client = server.client();
    cleanUp.defer(() => client.disconnect());
    const streams = (await client.keys('*')).filter((key) => key.includes(':events:t_'));
    expect(streams).toHaveLength(SLOTS * 2);
    expect(new Set(streams.map((key) => key.slice(0, key.indexOf(':events:')))).size).toBe(SLOTS);
  });

  it('are stopped by a cancel, whichever slot they are in', async () => {
    const server = cleanUp.use(await TestRedis.start());
    const { fixture, tenants } = await openTurns(withSlots(server.url, SLOTS));
    const cancelled: string[] = [];
    fixture.play = async ({ signal, turn }) => {
      await untilAborted(signal);
      cancelled.push(turn.tenantId);
      return '';
    };
    await fixture.worker();
    for (const tenantId of tenants) {
      const scope = await fixture.scope(tenantId);
      const { turnId } = await fixture.turns.accept(scope, input('wait'));
      await eventually(async () => (await fixture.turns.find(scope, turnId))?.status === 'running', { timeoutMs: WITHIN_MS });
      await fixture.turns.cancel(scope, turnId);
      await eventually(() => cancelled.includes(tenantId), { timeoutMs: WITHIN_MS });
    }
    expect(cancelled).toEqual(tenants);
  });
});

it('a turn leads to its tenant by its id alone, whichever slot they are in', async () => {
  const server = cleanUp.use(await TestRedis.start());
  const { fixture, tenants } = await openTurns(withSlots(server.url, SLOTS));
  const found: (string | undefined)[] = [];
  for (const tenantId of tenants) {
    const { turnId } = await fixture.turns.accept(await fixture.scope(tenantId), input('wait'));
    found.push(await fixture.turns.findTenant(turnId));
  }
  expect(found).toEqual(tenants);
  expect(await fixture.turns.findTenant('t_0')).toBeUndefined();
});

describe('the number of slots', () => {
  it('is refused in a line while processes run with another', async () => {
    const server = cleanUp.use(await TestRedis.start());
    const three = await openRedis({ url: withSlots(server.url, 3), role: 'worker', log }, cleanUp);
    const other = await openRedis({ url: withSlots(server.url, 2), role: 'worker', log }, cleanUp);
    await agreeOnSlots(three, () => other, log);
    expect(await findProblem(agreeOnSlots(other, () => three, log))).toContain(
      'REDIS_SLOTS: must be 3, as it is for the processes that run',
    );
    expect(await findProblem(assertSlots(other))).toContain('REDIS_SLOTS: must be 3');
    await assertSlots(three);
  });

  it('may be any for a command where Redis is empty, as it is before the first start and for a restore', async () => {
    const cluster = cleanUp.use(await RedisCluster.start());
    const redis = await openRedis({ url: withSlots(cluster.url, cluster.slots), role: 'worker', log }, cleanUp);
    await assertSlots(redis);
    expect(await isEmptyRedis(redis)).toBe(true);
    await listSlots(redis).at(-1)?.set(keyOf.slotsLock, 'left');
    expect(await isEmptyRedis(redis)).toBe(false);
    expect(await findProblem(assertSlots(redis))).toContain('REDIS_SLOTS: must be 1');
  });

  it('is known again once Redis, which was emptied, has been told of a process that runs', async () => {
    const server = cleanUp.use(await TestRedis.start());
    const open = async (slots: number): ReturnType<typeof openRedis> =>
      await openRedis({ url: withSlots(server.url, slots), role: 'worker', log }, cleanUp);
    const [running, starting, other] = [await open(3), await open(3), await open(2)];
    await agreeOnSlots(running, () => other, log);
    await server.flush();
    const announcement = new ProcessAnnouncement({ service: 'gateway', databasePool: 0, redis: running, log });
    await announcement.start();
    cleanUp.defer(async () => announcement.stop());
    await agreeOnSlots(starting, () => other, log);
    await assertSlots(starting);
    expect(await findProblem(agreeOnSlots(other, () => running, log))).toContain('REDIS_SLOTS: must be 3');
  });

  it('is changed by one process alone: one that hung for longer than its lock takes nothing from the one after it', async () => {
    const [server, away] = [cleanUp.use(await TestRedis.start()), cleanUp.use(await TestRedis.start())];
    const open = async (url: string, slots: number): ReturnType<typeof openRedis> =>
      await openRedis({ url: withSlots(url, slots), role: 'worker', log }, cleanUp);
    const [slow, second, before] = [await open(server.url, 2), await open(server.url, 2), await open(server.url, 3)];
    const beforeAway = await open(away.url, 3);
    const client = server.client();
    cleanUp.defer(() => client.disconnect());
    await client.set(keyOf.slots, 3);
    away.freeze();
    cleanUp.defer(() => away.thaw());
    const changing = agreeOnSlots(slow, () => beforeAway, log);
    await eventually(async () => (await client.exists(keyOf.slotsLock)) === 1);
    let changed = false;
    const agreeing = agreeOnSlots(second, () => before, log).then(() => {
      changed = true;
    });
    let lastMs = Date.now();
    await eventually(
      async () => {
        // Service time goes on by more than the lock is taken for.
        lastMs += 61_000;
        await client.hset(keyOf.clock, { last: lastMs, shift: 0 });
        return changed;
      },
      { timeoutMs: WITHIN_MS },
    );
    await agreeing;
    await client.set(keyOf.turn('of-the-second'), 'enqueued');
    away.thaw();
    await changing;
    expect(await client.exists(keyOf.turn('of-the-second'))).toBe(1);
    await assertSlots(slow);
  });

  it('is waited for by one that starts with the number of before while it is changed, and that one is refused then', async () => {
    const [server, away] = [cleanUp.use(await TestRedis.start()), cleanUp.use(await TestRedis.start())];
    const open = async (url: string, slots: number): ReturnType<typeof openRedis> =>
      await openRedis({ url: withSlots(url, slots), role: 'worker', log }, cleanUp);
    const [changer, starter, beforeAway] = [await open(server.url, 2), await open(server.url, 3), await open(away.url, 3)];
    const client = server.client();
    cleanUp.defer(() => client.disconnect());
    await client.mset({ [keyOf.slots]: 3, [keyOf.enqueued]: 'of an earlier run' });
    away.freeze();
    cleanUp.defer(() => away.thaw());
    const changing = agreeOnSlots(changer, () => beforeAway, log);
    await eventually(async () => (await client.exists(keyOf.enqueued)) === 0, { timeoutMs: WITHIN_MS });
    let ended = false;
    const starting = findProblem(agreeOnSlots(starter, () => changer, log)).finally(() => {
      ended = true;
    });
    // Each look of one that waits notes the time.
    const timeThen = await client.hget(keyOf.clock, 'last');
    await eventually(async () => ended || (await client.hget(keyOf.clock, 'last')) !== timeThen, { timeoutMs: WITHIN_MS });
    away.thaw();
    await changing;
    expect(await starting).toContain('REDIS_SLOTS: must be 2');
  });

  it('may change again after one that died in the middle, though none that runs notes the time', async () => {
    const server = cleanUp.use(await TestRedis.start());
    const open = async (slots: number): ReturnType<typeof openRedis> =>
      await openRedis({ url: withSlots(server.url, slots), role: 'worker', log }, cleanUp);
    const [starting, before] = [await open(2), await open(3)];
    const client = server.client();
    cleanUp.defer(() => client.disconnect());
    await client.set(keyOf.slots, 3);
    // As it is left by a deployment that was stopped an hour ago.
    await client.hset(keyOf.clock, { last: Date.now() - HOUR_MS, shift: 0 });
    await claimTask(client, keyOf.slotsLock, { forMs: 1000 });
    await agreeOnSlots(starting, () => before, log);
    await assertSlots(starting);
    expect(await client.exists(keyOf.slotsLock)).toBe(0);
  });

  it('may change while nothing runs: what was accepted is run from the files', async () => {
    const server = cleanUp.use(await TestRedis.start());
    const dataDir = await acceptWith(withSlots(server.url, SLOTS), 4);
    const client = server.client();
    cleanUp.defer(() => client.disconnect());
    await client.del(keyOf.processes);
    for (const slots of [2, 1]) {
      await using fixture = await TestTurns.start({ redisUrl: withSlots(server.url, slots), dataDir });
      const scope = await fixture.scope('tenant-0');
      expect(await scope.inbox.turnIds()).toHaveLength(4);
      expect((await client.keys('*')).filter((key) => key.includes(':turn:'))).toHaveLength(4);
      await client.del(keyOf.processes);
    }
    await using fixture = await TestTurns.start({ dataDir, redisUrl: server.url });
    const scope = await fixture.scope('tenant-0');
    const ids = await scope.inbox.turnIds();
    await fixture.worker();
    for (const turnId of ids) expect(await fixture.read(scope, turnId)).toContain('event: done');
    expect(fixture.started).toHaveLength(4);
  });
});

describe('a Redis Cluster', () => {
  it(
    'has lanes on all masters, and goes on where a replica takes the place of one',
    async () => {
      const cluster = cleanUp.use(await RedisCluster.start());
      const { fixture, tenants } = await openTurns(withSlots(cluster.url, cluster.slots));
      await fixture.worker();
      const answer = async (tenantId: string, text: string): Promise<string> => {
        const scope = await fixture.scope(tenantId);
        const { turnId } = await fixture.turns.accept(scope, input(text));
        return await fixture.read(scope, turnId);
      };
      for (const tenantId of tenants) expect(await answer(tenantId, 'before')).toContain('event: done');
      for (const master of tenants.keys()) expect((await cluster.keys(master)).some((key) => key.includes(':events:'))).toBe(true);
      for (const master of [1, 0]) {
        await cluster.killMaster(master);
        for (const tenantId of tenants) expect(await answer(tenantId, `after ${String(master)}`)).toContain('event: done');
      }
    },
    6 * MINUTES,
  );

  it(
    'runs turns of the other slots while one is frozen, and its own when it is back',
    async () => {
      const cluster = cleanUp.use(await RedisCluster.start());
      const { fixture, tenants } = await openTurns(withSlots(cluster.url, cluster.slots));
      await fixture.worker();
      const masters = await Promise.all(
        [0, 1, 2].map(async (master) => ({ master, isFirst: (await cluster.keys(master)).some((key) => key.includes('{q0}')) })),
      );
      const frozen = masters.find(({ isFirst }) => !isFirst)?.master ?? 0;
      cluster.freeze(frozen);
      cleanUp.defer(() => cluster.thaw(frozen));
      const accepted = await Promise.all(
        tenants.map(async (tenantId) => {
          const scope = await fixture.scope(tenantId);
          return { scope, ...(await (await fixture.gateway()).accept(scope, input('hello'))) };
        }),
      );
      const ended = new Set<string>();
      for (const { scope, turnId } of accepted) void fixture.read(scope, turnId).then(() => ended.add(turnId));
      await eventually(() => ended.size === tenants.length - 1, { timeoutMs: WITHIN_MS });
      cluster.thaw(frozen);
      await eventually(() => ended.size === tenants.length, { timeoutMs: WITHIN_MS });
      expect(fixture.started).toHaveLength(tenants.length);
    },
    6 * MINUTES,
  );
});

/** @returns the data folder of a process that has accepted so many turns of `tenant-0` and has ended */
async function acceptWith(redisUrl: string, turns: number): Promise<string> {
  const { path } = cleanUp.use(await temporaryDirectory());
  await using fixture = await TestTurns.start({ redisUrl, dataDir: path });
  const scope = await fixture.scope('tenant-0');
  for (let each = 0; each < turns; each += 1) await fixture.turns.accept(scope, input(`turn ${String(each)}`));
  await fixture.closeLog();
  return path;
}
