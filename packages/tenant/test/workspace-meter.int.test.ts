import { link, mkdir, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { WorkspaceMeter } from '../src/files/workspace-meter.ts';
import { startTenants, temporaryFolder } from './support.ts';

const page = 4096;

async function usedIn(root: string): Promise<number> {
  return (await new WorkspaceMeter({ root, maxBytes: async () => Promise.resolve(1) }).look()).usedBytes;
}

describe('what the workspace holds', () => {
  it('is what commands and uploads have put there, and not the service’s own state', async () => {
    await using world = await startTenants();
    const scope = await world.tenants.create('acme');
    const before = await usedIn(scope.root);
    await writeFile(join(scope.root, 'sessions', 'large.json'), Buffer.alloc(10 * page));
    expect(await usedIn(scope.root)).toBe(before);
    await scope.uploads.save({ name: 'a.txt', type: 'text/plain', bytes: Buffer.alloc(10 * page) });
    expect(await usedIn(scope.root)).toBeGreaterThanOrEqual(before + 10 * page);
  });

  it('counts holes in full, each file once, and nothing behind links', async () => {
    await using folder = await temporaryFolder();
    await using other = await temporaryFolder();
    await writeFile(join(other.path, 'large'), Buffer.alloc(100 * page));
    await symlink(other.path, join(folder.path, 'link'));
    const links = await usedIn(folder.path);
    await writeFile(join(folder.path, 'sparse'), '');
    await truncate(join(folder.path, 'sparse'), 1000 * page);
    await mkdir(join(folder.path, 'inner'));
    await link(join(folder.path, 'sparse'), join(folder.path, 'inner', 'second-name'));
    expect(await usedIn(folder.path)).toBe(links + 1000 * page);
  });

  it('cannot be hidden by nesting it too deeply to be measured', async () => {
    await using folder = await temporaryFolder();
    await mkdir(join(folder.path, ...Array.from({ length: 300 }, () => 'd')), { recursive: true });
    expect(await usedIn(folder.path)).toBe(Infinity);
  });

  it('is looked at again once it may be below, and notifies waiters that it is over', async () => {
    await using folder = await temporaryFolder();
    const meter = new WorkspaceMeter({ root: folder.path, maxBytes: async () => Promise.resolve(10 * page) });
    const waits = new AbortController();
    expect(await meter.look()).toEqual({ usedBytes: 0, maxBytes: 10 * page });
    const over = meter.untilOver(waits.signal);
    await writeFile(join(folder.path, 'large'), Buffer.alloc(1000 * page));
    expect(await over).toMatchObject({ maxBytes: 10 * page });
    await rm(join(folder.path, 'large'));
    expect(await meter.look()).toEqual({ usedBytes: 0, maxBytes: 10 * page });
    const ended = meter.untilOver(waits.signal);
    waits.abort();
    expect(await ended).toBeUndefined();
  });
});
