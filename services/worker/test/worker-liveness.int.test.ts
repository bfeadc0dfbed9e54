import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { connectRedis } from '@concierge/runtime';
import { silentLog as log, temporaryDirectory, TestRedis } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';
import { keyOf, Lanes } from '@concierge/turn';
import { WorkerRunDirectories } from '../src/capabilities/runtime/worker-run-directories.ts';
import { SandboxReaper, WorkerLiveness } from '../src/capabilities/runtime/sandbox-reaper.ts';

let server: TestRedis;
let redis: ReturnType<typeof connectRedis>;
let lanes: Lanes;
let liveness: WorkerLiveness;
let nowMs: number;

setUpEach(async (stack) => {
  server = stack.use(await TestRedis.start());
  redis = connectRedis({ url: server.url, role: 'worker', log });
  stack.defer(() => redis.disconnect());
  lanes = new Lanes(redis);
  nowMs = 0;
  liveness = new WorkerLiveness({ redis, ownId: () => 'w_own', now: () => nowMs });
});

async function beat(id: string): Promise<void> {
  await lanes.heartbeat({ id, share: 1, facts: {}, leaving: false });
}

/** A look every ten seconds, as the reaper takes it. `beats`: it lives, however long this machine stands still. */
async function looks(id: string, count: number, { beats = false } = {}): Promise<boolean[]> {
  const seen: boolean[] = [];
  for (let look = 0; look < count; look += 1) {
    if (beats) await beat(id);
    seen.push(await liveness.isAlive(id));
    nowMs += 10_000;
  }
  return seen;
}

describe('whether a worker lives', () => {
  it('is true of itself and of everyone with a heartbeat', async () => {
    expect(await looks('w_own', 4)).toEqual([true, true, true, true]);
    expect(await looks('w_other', 4, { beats: true })).toEqual([true, true, true, true]);
  });

  it('is false of one who was silent in look after look, within 40 seconds', async () => {
    expect(await looks('w_gone', 3)).toEqual([true, true, false]);
  });

  it('is false, too, of one whose last word is old', async () => {
    await redis.zadd(keyOf.workers, 1, 'w_old');
    expect(await looks('w_old', 3)).toEqual([true, true, false]);
  });

  it('stays true in a Redis that came back empty, without any heartbeat yet', async () => {
    await beat('w_other');
    expect(await looks('w_other', 1)).toEqual([true]);
    await server.flush();
    expect(await looks('w_other', 1)).toEqual([true]);
    expect(await looks('w_other', 3, { beats: true })).toEqual([true, true, true]);
    await server.flush();
    expect(await looks('w_other', 1)).toEqual([true]);
  });

  it('is begun to be asked anew after a Redis that did not answer, and after a long pause', async () => {
    expect(await looks('w_gone', 1)).toEqual([true]);
    redis.disconnect();
    await expect(liveness.isAlive('w_gone')).rejects.toThrow('Connection is closed');
    await redis.connect();
    nowMs += 10_000;
    expect(await looks('w_gone', 1)).toEqual([true]);
    nowMs += 60_000;
    expect(await looks('w_gone', 1)).toEqual([true]);
  });
});

describe('the reaper', () => {
  it('clears away the sandboxes of workers that are gone, and their folders', async () => {
    await using directory = await temporaryDirectory();
    const folders = new WorkerRunDirectories(directory.path, () => 'w_own');
    const deployment = await folders.deployment();
    expect(await new WorkerRunDirectories(directory.path, () => 'w_other').deployment()).toBe(deployment);
    await mkdir(await folders.nextFolder(), { recursive: true });
    await mkdir(join(directory.path, 'run', 'w_gone', '1'), { recursive: true });
    await mkdir(join(directory.path, 'run', 'w_other'));
    const gone: string[] = [];
    const owners = ['w_own', 'w_other', 'w_gone'];
    const sandboxes = {
      reap: async (isAlive: (ownerId: string) => Promise<boolean>): Promise<number> => {
        for (const owner of owners) if (!(await isAlive(owner))) gone.push(owner);
        return gone.length;
      },
    };
    const reaper = new SandboxReaper({ sandboxes, folders, liveness, log });
    for (let round = 0; round < 3; round += 1) {
      expect(gone).toEqual([]);
      await beat('w_other');
      await reaper.reconcile();
      nowMs += 10_000;
    }
    expect(gone).toEqual(['w_gone']);
    expect((await readdir(join(directory.path, 'run'))).toSorted((one, other) => one.localeCompare(other))).toEqual([
      'deployment',
      'w_other',
      'w_own',
    ]);
    await folders.removeOwn();
    expect(await readdir(join(directory.path, 'run'))).not.toContain('w_own');
  });
});
