import { chown, mkdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { TenantFiles } from '../src/files/tenant-files.ts';
import { temporaryFolder } from './support.ts';

const sandboxUser = 10_001;

describe('files and folders made in a folder that another user owns', () => {
  it("get the folder's owner when root makes them, so that the tenant's sandbox can change them", async () => {
    await using folder = await temporaryFolder();
    const root = join(folder.path, 'tenant');
    await mkdir(root);
    const own = process.getuid?.() ?? 0;
    const expected = own === 0 ? sandboxUser : own;
    if (own === 0) await chown(root, sandboxUser, sandboxUser);
    const files = new TenantFiles({ root });
    await files.writeText('reports/2026/july.md', 'written');
    await files.writeText('reports/2026/july.md', 'written again');
    await files.appendText('memory/today.md', 'a line\n');
    for (const path of ['reports', 'reports/2026', 'reports/2026/july.md', 'memory', 'memory/today.md']) {
      expect([path, (await stat(join(root, path))).uid]).toEqual([path, expected]);
    }
  });
});
