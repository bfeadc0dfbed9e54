import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { connectRedis } from '@concierge/runtime';
import { eventually, gate, silentLog, untilAborted } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';
import { forgetTenant, RateLimits, removeTenant, StreamBytes } from '../src/index.ts';
import { input, parse, TestTurns, textDelta } from './test-turns.ts';

let fixture: TestTurns;
let redis: ReturnType<typeof connectRedis>;

setUpEach(async (stack) => {
  fixture = stack.use(await TestTurns.start());
  redis = connectRedis({ url: fixture.server.url, role: 'worker', log: silentLog });
  stack.defer(() => redis.disconnect());
});

/** Waits for turns longer than a slow machine takes to end them. */
async function remove(id: string, stopTimeoutMs = 120_000): Promise<{ stillRunning: number }> {
  return await removeTenant({ tenants: fixture.tenants, turns: fixture.turns, redis, stopTimeoutMs }, id);
}

/** Keys of the turn path that still contain a tenant's id or text. */
async function findKeys(tenantId: string, word: string): Promise<string[]> {
  const left: string[] = [];
  for (const key of await redis.keys('concierge:*')) {
    const type = await redis.type(key);
    const bytes = type === 'stream' ? JSON.stringify(await redis.xrange(key, '-', '+')) : '';
    const account = type === 'hash' ? await redis.hget(key, 'account') : null;
    if (key.includes(`:${tenantId}/`) || bytes.includes(word) || account === tenantId) left.push(key);
  }
  return left;
}

/** All that is left of tenants, folders under removal included; files of the service itself do not count. */
async function tenantFolders(): Promise<string[]> {
  return (await readdir(join(fixture.dataDir, 'tenants'))).filter((name) => name !== '.generations' && name !== '.wal');
}

describe('removing a tenant whose agents are at work', () => {
  it('ends its turns first: when the files go, nothing of it runs any more', async () => {
    const [acme, bolt] = [await fixture.scope('acme'), await fixture.scope('bolt')];
    const begun = gate();
    const seen: string[][] = [];
    fixture.play = async (run) => {
      if (run.turn.tenantId === 'bolt') return 'bolt is answered';
      run.writer.emit(textDelta('the secret word'));
      await run.writer.flush();
      begun.open();
      await untilAborted(run.signal);
      // What a sandbox would still have to clear away.
      seen.push(await tenantFolders());
      await mkdir(join(acme.root, 'made-while-stopping'));
      return 'stopped';
    };
    await fixture.worker();
    await fixture.turns.accept(acme, input('work', { sender: 'ann' }));
    await begun.opened;
    await fixture.turns.accept(acme, input('waits', { sender: 'ann' }));
    expect(await remove('acme')).toEqual({ stillRunning: 0 });
    expect(seen).toEqual([['acme', 'bolt']]);
    expect(await tenantFolders()).toEqual(['bolt']);
    expect(await findKeys('acme', 'the secret word')).toEqual([]);
    const { turnId } = await fixture.turns.accept(bolt, input('hello'));
    expect(parse(await fixture.read(bolt, turnId)).at(-1)).toMatchObject({ type: 'done' });
    expect(await findKeys('bolt', 'bolt is answered')).not.toEqual([]);
  });

  it('does not wait for ever, and what a turn writes after that leads nowhere', async () => {
    const acme = await fixture.scope('acme');
    const [begun, goOn] = [gate(), gate()];
    let ended = false;
    fixture.play = async () => {
      begun.open();
      await goOn.opened;
      ended = true;
      return 'words of a deleted tenant';
    };
    await fixture.worker();
    await fixture.turns.accept(acme, input('work'));
    await begun.opened;
    expect(await remove('acme', 50)).toEqual({ stillRunning: 1 });
    goOn.open();
    await eventually(() => ended);
    await fixture.reconciler.reconcile();
    expect(await tenantFolders()).toEqual([]);
    expect(await findKeys('acme', 'words of a deleted tenant')).toEqual([]);
  });
});

describe('a tenant of the name of a deleted one', () => {
  const asked = (): ReturnType<typeof input> => input('What is my balance?', { dedupeId: 'key-1', requestHash: 'same' });

  it('answers the request that the old one was asked by the same key itself', async () => {
    fixture.play = async () => Promise.resolve('the old balance');
    await fixture.worker();
    const old = await fixture.scope('acme');
    const first = await fixture.turns.accept(old, asked());
    await fixture.read(old, first.turnId);
    await remove('acme');
    fixture.play = async () => Promise.resolve('the new balance');
    const again = await fixture.scope('acme');
    const second = await fixture.turns.accept(again, asked());
    expect(second).toMatchObject({ replayed: false });
    expect(second.turnId).not.toBe(first.turnId);
    expect(await fixture.turns.accept(again, asked())).toMatchObject({ turnId: second.turnId, replayed: true });
  });

  it('does so also when Redis could not be asked to forget', async () => {
    await fixture.worker();
    const old = await fixture.scope('acme');
    const first = await fixture.turns.accept(old, asked());
    await fixture.read(old, first.turnId);
    await fixture.tenants.delete('acme');
    expect(await fixture.turns.accept(await fixture.scope('acme'), asked())).toMatchObject({ replayed: false });
  });

  it('has the whole of what visitors of its widget may ask, and of its streams', async () => {
    const streams = new StreamBytes(redis, silentLog);
    const ask = async (): Promise<boolean> =>
      (await new RateLimits(redis).take('acme:visitors', { limit: 1, windowSeconds: 3600 })).allowed;
    await fixture.scope('acme');
    expect([await ask(), await ask()]).toEqual([true, false]);
    streams.add('acme', 1000);
    await streams.flush();
    await fixture.tenants.delete('acme', async (id) => forgetTenant(redis, id));
    expect((await redis.keys('concierge:*')).filter((key) => key.includes(':acme:'))).toEqual([]);
    await fixture.scope('acme');
    expect(await ask()).toBe(true);
  });

  it('gets no work that was left for the old one', async () => {
    const old = await fixture.scope('acme');
    const bolt = await fixture.scope('bolt');
    for (const scope of [old, bolt]) await fixture.turns.accept(scope, input('waits'));
    const cutOff = join(fixture.dataDir, 'tenants', '.removed-acme-0123456789ab');
    await rename(old.root, cutOff);
    await writeFile(join(cutOff, 'left'), 'x');
    expect(await fixture.tenants.sweepRemoved(async (id) => forgetTenant(redis, id))).toBe(1);
    expect(await findKeys('acme', 'waits')).toEqual([]);
    expect(await findKeys('bolt', 'waits')).not.toEqual([]);
    expect(await tenantFolders()).toEqual(['bolt']);
  });
});

describe('ids of turns', () => {
  it('stay what they were for a tenant from before there were marks', async () => {
    const scope = await fixture.scope('acme');
    await rm(join(scope.root, 'settings', 'incarnation'));
    const { turnId } = await fixture.turns.accept(await fixture.scope('acme'), input('hello', { dedupeId: 'key-1' }));
    expect(turnId).toBe('t_1b5595c14f7a501596403d15c3c4e620');
  });
});

describe('cancelling all turns of a tenant', () => {
  it('says that it began, also where the last of them ends by itself before it is cancelled', async () => {
    const scope = await fixture.scope();
    const [begun, finished] = [gate(), gate()];
    fixture.play = async () => {
      begun.open();
      await finished.opened;
      return 'done';
    };
    await fixture.worker();
    await fixture.turns.accept(scope, input('one'));
    await begun.opened;
    const onBegin = async (): Promise<void> => {
      finished.open();
      await eventually(async () => (await scope.inbox.turnIds()).length === 0);
    };
    expect(await fixture.turns.cancelAll(scope, { onBegin })).toEqual({ waiting: 0, running: 0, isBegun: true });
    expect(await fixture.turns.cancelAll(scope, { onBegin })).toEqual({ waiting: 0, running: 0, isBegun: false });
  });
});
