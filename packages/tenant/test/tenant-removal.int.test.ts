import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, readdir, rename, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { chdir, cwd } from 'node:process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { emptyFolder, FolderHandle } from '@concierge/files';
import { newSession, newSessionId, startTenants, temporaryFolder, turnRecord } from './support.ts';

const swapperPath = fileURLToPath(new URL('./folder-swapper.ts', import.meta.url));
const folders = 40;
const filesEach = 40;

/** A process whose working directory is the tenant's folder. Ends with its scope. */
async function swapIn(folder: string, target: string): Promise<AsyncDisposable> {
  const child = spawn(process.execPath, ['--no-warnings', swapperPath, target, String(folders)], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const closed = once(child, 'close');
  await once(child.stdout, 'data');
  return {
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL');
      await closed;
    },
  };
}

async function fill(folder: string, files: number): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (let at = 0; at < files; at += 1) await writeFile(join(folder, `f${String(at)}`), 'x');
}

describe('removing a tenant', () => {
  it('removes nothing behind the links that its own commands put in place of folders meanwhile', async () => {
    await using world = await startTenants();
    await using host = await temporaryFolder();
    await fill(host.path, filesEach);
    for (const id of ['one', 'two', 'three']) {
      const { root } = await world.tenants.create(id);
      for (let at = 0; at < folders; at += 1) await fill(join(root, `d${String(at)}`), filesEach);
      await using _swapper = await swapIn(root, host.path);
      const [outcome] = await Promise.allSettled([world.tenants.delete(id)]);
      expect(await readdir(host.path)).toHaveLength(filesEach);
      expect(outcome).toMatchObject({ status: 'fulfilled' });
    }
    expect(await readdir(join(world.dataDir, 'tenants'))).toEqual([]);
  });

  it('reaches what is nested deeper than any path can name', async () => {
    await using world = await startTenants();
    const { root } = await world.tenants.create('acme');
    const before = cwd();
    try {
      chdir(root);
      for (let level = 0; level < 300; level += 1) {
        await mkdir('a-folder-with-a-name-of-some-length');
        chdir('a-folder-with-a-name-of-some-length');
      }
      await writeFile('deep', 'x');
    } finally {
      chdir(before);
    }
    await world.tenants.delete('acme');
    expect(await readdir(join(world.dataDir, 'tenants'))).toEqual([]);
  });

  it('takes folders along that no user may enter or change', async () => {
    await using world = await startTenants();
    const { root } = await world.tenants.create('acme');
    await fill(join(root, 'locked', 'inner'), 1);
    for (const path of [join(root, 'locked', 'inner'), join(root, 'locked')]) await chmod(path, 0o000);
    await world.tenants.delete('acme');
    expect(await readdir(join(world.dataDir, 'tenants'))).toEqual([]);
  });

  it('is finished later when it was cut off, and leaves a new tenant of that name alone', async () => {
    await using world = await startTenants();
    const tenants = join(world.dataDir, 'tenants');
    for (const id of ['acme', 'acme-2']) {
      const { root } = await world.tenants.create(id);
      await fill(join(root, 'd0'), 3);
      await rename(root, join(tenants, `.removed-${id}-0123456789ab`));
    }
    const again = await world.tenants.create('acme');
    expect(await world.tenants.sweepRemoved()).toBe(2);
    expect(await readdir(tenants)).toEqual(['acme']);
    expect(await again.settings()).toMatchObject({ plan: 'standard' });
    expect(await world.tenants.sweepRemoved()).toBe(0);
  });

  it('leaves nothing in the lists of a new tenant of that name, wherever it was cut off', async () => {
    await using world = await startTenants();
    const deleted = await world.tenants.create('acme');
    const session = newSession(newSessionId(), { sender: 'ann', turns: [turnRecord('t-1')] });
    await deleted.sessions.publish(session);
    await deleted.reindex();
    expect((await deleted.index.listSessions({ limit: 10 })).items).toHaveLength(1);
    const cutOff = async (): Promise<void> => Promise.reject(new Error('Redis is away'));
    await expect(world.tenants.delete('acme', cutOff)).rejects.toThrow('Redis is away');
    const again = await world.tenants.create('acme');
    expect((await again.index.listSessions({ limit: 10 })).items).toEqual([]);
    expect((await again.index.listContacts({ limit: 10 })).items).toEqual([]);
    expect(await again.index.findTurn('t-1')).toBeUndefined();
    await again.sessions.publish(session);
    await again.index.putSession(session);
    await expect(world.tenants.create('acme')).rejects.toMatchObject({ code: 'conflict' });
    expect((await again.index.listSessions({ limit: 10 })).items).toHaveLength(1);
  });
});

describe('emptying a folder', () => {
  it('removes links and leaves what they lead to', async () => {
    await using folder = await temporaryFolder();
    await using other = await temporaryFolder();
    await fill(other.path, 2);
    await symlink(other.path, join(folder.path, 'link'));
    await symlink(join(other.path, 'f0'), join(folder.path, 'file-link'));
    await emptyFolder(await FolderHandle.open(folder.path));
    expect(await readdir(folder.path)).toEqual([]);
    expect(await readdir(other.path)).toHaveLength(2);
  });
});
