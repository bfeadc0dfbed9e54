import { execFile } from 'node:child_process';
import { closeSync, constants, openSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { startTenants, temporaryFolder } from './support.ts';

/** More than the pool has threads, whatever the environment contains. */
const blockedThreads = 1024;

describe('looking for a tenant', () => {
  it('takes the same way for one that is known and one that is not: neither waits for a thread', async () => {
    await using world = await startTenants();
    await using folder = await temporaryFolder();
    await world.tenants.create('acme');
    expect(await world.tenants.find('acme')).toBeDefined();
    const pipe = join(folder.path, 'pipe');
    await promisify(execFile)('mkfifo', [pipe]);
    // Each waits in a thread of the pool for a writer.
    const opening = Array.from({ length: blockedThreads }, async () => open(pipe, 'r'));
    const found: string[] = [];
    const looks = ['acme', 'nobody'].map(async (id) => world.tenants.find(id).then(() => found.push(id)));
    for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    const foundWhileBlocked = found.toSorted();
    const writer = openSync(pipe, constants.O_RDWR);
    for (const handle of await Promise.all(opening)) await handle.close();
    closeSync(writer);
    await Promise.all(looks);
    expect(foundWhileBlocked).toEqual(['acme', 'nobody']);
  });
});
