import { describe, expect, it } from '@jest/globals';
import type { RecordChange, TellRecordChange } from '@concierge/files';
import { findSlot, listSlots, openConnection, openRedis, withSlots } from '@concierge/runtime';
import { eventually, RedisCluster, silentLog as log, TestRedis } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';
import { hearRecordChanges, keyOf, tellRecordChanges } from '../src/index.ts';

const WITHIN_MS = 60_000;
const change = { store: 'keys', name: 'k_0123456789abcdef', revision: '2026-11-29T10:00:00.000Z', isRemoved: false };

let cleanUp: AsyncDisposableStack;
setUpEach((stack) => {
  cleanUp = stack;
});

async function openBoth(url: string): Promise<{
  readonly redis: Awaited<ReturnType<typeof openRedis>>;
  readonly tell: TellRecordChange;
  readonly everyOneIsHeard: () => Promise<boolean>;
}> {
  const redis = await openRedis({ url, role: 'producer', log }, cleanUp);
  const heard = new Set<string>();
  const tenants = { hearRecordChange: (told: RecordChange) => void heard.add(JSON.stringify(told)) };
  hearRecordChanges({ tenants, subscriber: openConnection({ url, role: 'subscriber', log }, cleanUp), log });
  const names = Array.from({ length: 100 }, (_, index) => `tenant-${String(index)}`);
  const tenantIds = listSlots(redis).map((slot) => names.find((name) => findSlot(redis, name) === slot) ?? '');
  const tell = tellRecordChanges(redis);
  const everyOneIsHeard = async (): Promise<boolean> => {
    heard.clear();
    return eventually(
      () => {
        for (const tenantId of tenantIds) tell({ tenantId, ...change });
        return tenantIds.every((tenantId) => heard.has(JSON.stringify({ tenantId, ...change })));
      },
      { timeoutMs: WITHIN_MS },
    );
  };
  return { redis, tell, everyOneIsHeard };
}

describe('a changed record', () => {
  it.each<[string, () => Promise<string>]>([
    ['one server', async () => cleanUp.use(await TestRedis.start()).url],
    [
      'a cluster',
      async () => {
        const cluster = cleanUp.use(await RedisCluster.start());
        return withSlots(cluster.url, cluster.slots);
      },
    ],
  ])('is told to all that listen, whichever slot its tenant is in: %s', async (_name, start) => {
    const { everyOneIsHeard } = await openBoth(await start());
    expect(await everyOneIsHeard()).toBe(true);
  });

  it('is told to no process while Redis is away, and again when it is back', async () => {
    const server = cleanUp.use(await TestRedis.start());
    const { redis, tell, everyOneIsHeard } = await openBoth(withSlots(server.url, 3));
    expect(await everyOneIsHeard()).toBe(true);
    await server.kill();
    tell({ tenantId: 'acme', ...change });
    await server.start();
    expect(await everyOneIsHeard()).toBe(true);
    for (const text of ['', 'null', '{}', JSON.stringify({ tenantId: 'acme', ...change, name: '../k' })])
      await redis.publish(keyOf.recordChanges, text);
    expect(await everyOneIsHeard()).toBe(true);
  });
});
