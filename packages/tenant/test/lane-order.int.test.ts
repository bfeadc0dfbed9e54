import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { FolderSync } from '@concierge/files';
import { temporaryDirectory } from '@concierge/testing';
import { Generations, LaneOrder } from '../src/inbox/lane-order.ts';

const session = 'a'.repeat(32);

let folder: Awaited<ReturnType<typeof temporaryDirectory>>;
/** Two processes over one disk. */
let one: LaneOrder;
let other: LaneOrder;

function orderOver(path: string): LaneOrder {
  return new LaneOrder({ folder: join(path, 'inbox', '.order'), folders: new FolderSync() });
}

beforeEach(async () => {
  folder = await temporaryDirectory();
  await mkdir(join(folder.path, 'inbox'));
  [one, other] = [orderOver(folder.path), orderOver(folder.path)];
});
afterEach(async () => {
  await folder[Symbol.asyncDispose]();
});

describe('numbers of a session', () => {
  it('are given once each, in the order in which they were asked for', async () => {
    expect(await one.isUsed(session)).toBe(false);
    const turnIds = Array.from({ length: 12 }, (_, index) => `t_${String(index)}`);
    for (const [index, turnId] of turnIds.entries()) await (index % 2 === 0 ? one : other).claim(session, turnId);
    expect(await other.read(session)).toEqual({ numbered: turnIds, mentioned: [] });
    expect(await one.isUsed(session)).toBe(true);
  });

  it('are given once each to many that ask at the same time, and one to a turn that asks twice', async () => {
    const turnIds = Array.from({ length: 10 }, (_, index) => `t_${String(index)}`);
    await Promise.all([...turnIds, ...turnIds].map(async (turnId, index) => (index % 2 === 0 ? one : other).claim(session, turnId)));
    const { numbered } = await one.read(session);
    expect(numbered.toSorted()).toEqual(turnIds.toSorted());
  });

  it('go with their turns, and the folder with the last of them', async () => {
    for (const turnId of ['t_1', 't_2']) await one.claim(session, turnId);
    await one.mention(session, 't_0');
    await other.remove(session, ['t_1', 't_0']);
    expect(await one.read(session)).toEqual({ numbered: ['t_2'], mentioned: [] });
    await one.claim(session, 't_3');
    expect((await one.read(session)).numbered).toEqual(['t_2', 't_3']);
    await other.remove(session, ['t_2', 't_3']);
    expect(await one.isUsed(session)).toBe(false);
    expect(await one.sessionIds()).toEqual([]);
  });

  it('are given while another process removes the folder', async () => {
    const claiming = (async () => {
      for (let index = 0; index < 30; index += 1) await one.claim(session, `t_${String(index)}`);
    })();
    for (let index = 0; index < 29; index += 1) await other.remove(session, [`t_${String(index)}`, `t_${String(index - 1)}`]);
    await claiming;
    const { numbered } = await one.read(session);
    expect(numbered).toEqual(numbered.toSorted((left, right) => Number(left.slice(2)) - Number(right.slice(2))));
    expect(numbered.at(-1)).toBe('t_29');
  });

  it('of turns that are not in the inbox are cleared away after a while', async () => {
    await one.claim(session, 't_gone');
    await one.claim(session, 't_here');
    const isInInbox = (turnId: string): boolean => turnId === 't_here';
    await one.sweep(isInInbox);
    expect((await one.read(session)).numbered).toEqual(['t_gone', 't_here']);
    await one.sweep(isInInbox, -1000);
    expect((await one.read(session)).numbered).toEqual(['t_here']);
  });

  it('are no place for a name that leads elsewhere', async () => {
    await expect(one.claim('../x', 't_1')).rejects.toThrow('not a session id');
  });
});

describe('generations', () => {
  it('are each above all before, in any process, and leave few files', async () => {
    const place = join(folder.path, '.generations');
    const processes = [1, 2].map(() => new Generations({ folder: place, folders: new FolderSync() }));
    const drawn = await Promise.all(Array.from({ length: 20 }, async (_, index) => processes[index % 2]?.next()));
    expect(new Set(drawn).size).toBe(20);
    const next = (await processes[0]?.next()) ?? 0;
    expect(next).toBeGreaterThan(Math.max(...drawn.map(Number)));
    expect((await readdir(place)).length).toBeLessThan(10);
  });
});
