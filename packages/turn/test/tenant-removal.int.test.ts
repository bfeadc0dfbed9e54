import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { connectRedis } from '@concierge/runtime';
import { eventually, gate, silentLog, untilAborted } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';
import { forgetTenant, removeTenant } from '../src/index.ts';
import { input, parse, TestTurns, textDelta } from './test-turns.ts';

let rig: TestTurns;
let redis: ReturnType<typeof connectRedis>;

setUpEach(async (stack) => {
  rig = stack.use(await TestTurns.start());
  redis = connectRedis({ url: rig.server.url, role: 'producer', log: silentLog });
  stack.defer(() => redis.disconnect());
});

async function remove(id: string, stopTimeoutMs?: number): Promise<{ stillRunning: number }> {
  return await removeTenant(
    { tenants: rig.tenants, turns: rig.turns, redis, ...(stopTimeoutMs === undefined ? {} : { stopTimeoutMs }) },
    id,
  );
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
  return (await readdir(join(rig.dataDir, 'tenants'))).filter((name) => name !== '.generations' && name !== '.wal');
}

describe('removing a tenant whose agents are at work', () => {
  it('ends its turns first: when the files go, nothing of it runs any more', async () => {
    const [acme, bolt] = [await rig.scope('acme'), await rig.scope('bolt')];
    const begun = gate();
    const seen: string[][] = [];
    rig.play = async (run) => {
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
    await rig.worker();
    await rig.turns.accept(acme, input('work', { sender: 'ann' }));
    await begun.opened;
    await rig.turns.accept(acme, input('waits', { sender: 'ann' }));
    expect(await remove('acme')).toEqual({ stillRunning: 0 });
    expect(seen).toEqual([['acme', 'bolt']]);
    expect(await tenantFolders()).toEqual(['bolt']);
    expect(await findKeys('acme', 'the secret word')).toEqual([]);
    const { turnId } = await rig.turns.accept(bolt, input('hello'));
    expect(parse(await rig.read(bolt, turnId)).at(-1)).toMatchObject({ type: 'done' });
    expect(await findKeys('bolt', 'bolt is answered')).not.toEqual([]);
  });

  it('does not wait for ever, and what a turn writes after that leads nowhere', async () => {
    const acme = await rig.scope('acme');
    const [begun, goOn] = [gate(), gate()];
    let ended = false;
    rig.play = async () => {
      begun.open();
      await goOn.opened;
      ended = true;
      return 'words of a deleted tenant';
    };
    await rig.worker();
    await rig.turns.accept(acme, input('work'));
    await begun.opened;
    expect(await remove('acme', 50)).toEqual({ stillRunning: 1 });
    goOn.open();
    await eventually(() => ended);
    await rig.reconciler.reconcile();
    expect(await tenantFolders()).toEqual([]);
    expect(await findKeys('acme', 'words of a deleted tenant')).toEqual([]);
  });
});

describe('a tenant of the name of a deleted one', () => {
  const asked = (): ReturnType<typeof input> => input('What is my balance?', { dedupeId: 'key-1', requestHash: 'same' });

  it('answers the request that the old one was asked by the same key itself', async () => {
    rig.play = async () => Promise.resolve('the old balance');
    await rig.worker();
    const old = await rig.scope('acme');
    const first = await rig.turns.accept(old, asked());
    await rig.read(old, first.turnId);
    await remove('acme');
    rig.play = async () => Promise.resolve('the new balance');
    const again = await rig.scope('acme');
    const second = await rig.turns.accept(again, asked());
    expect(second).toMatchObject({ replayed: false });
    expect(second.turnId).not.toBe(first.turnId);
    expect(await rig.turns.accept(again, asked())).toMatchObject({ turnId: second.turnId, replayed: true });
  });

  it('does so also when Redis could not be asked to forget', async () => {
    await rig.worker();
    const old = await rig.scope('acme');
    const first = await rig.turns.accept(old, asked());
    await rig.read(old, first.turnId);
    await rig.tenants.delete('acme');
    expect(await rig.turns.accept(await rig.scope('acme'), asked())).toMatchObject({ replayed: false });
  });

  it('gets no work that was left for the old one', async () => {
    const old = await rig.scope('acme');
    const bolt = await rig.scope('bolt');
    for (const scope of [old, bolt]) await rig.turns.accept(scope, input('waits'));
    const cutOff = join(rig.dataDir, 'tenants', '.removed-acme-0123456789ab');
    await rename(old.root, cutOff);
    await writeFile(join(cutOff, 'left'), 'x');
    expect(await rig.tenants.sweepRemoved(async (id) => forgetTenant(redis, id))).toBe(1);
    expect(await findKeys('acme', 'waits')).toEqual([]);
    expect(await findKeys('bolt', 'waits')).not.toEqual([]);
    expect(await tenantFolders()).toEqual(['bolt']);
  });
});

describe('ids of turns', () => {
  it('stay what they were for a tenant from before there were marks', async () => {
    const scope = await rig.scope('acme');
    await rm(join(scope.root, 'settings', 'incarnation'));
    const { turnId } = await rig.turns.accept(await rig.scope('acme'), input('hello', { dedupeId: 'key-1' }));
    expect(turnId).toBe('t_1b5595c14f7a501596403d15c3c4e620');
  });
});
