import { once } from 'node:events';
import { mkdir, readdir, readFile, realpath, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { describe, expect, it } from '@jest/globals';
import { AppError } from '@concierge/contract';
import { isSystemError } from '@concierge/files';
import { TenantFiles } from '../src/files/tenant-files.ts';
import { temporaryFolder } from './support.ts';

const reads = 6000;
const secret = 'the secret of another tenant';

interface Outcome {
  own: number;
  refused: number;
  leaked: number;
}

async function count(outcome: Outcome, read: () => Promise<string>): Promise<void> {
  try {
    const text = await read();
    outcome[text === secret ? 'leaked' : 'own'] += 1;
  } catch (error) {
    if (!(error instanceof AppError) && !isSystemError(error, 'ENOENT', 'ENOTDIR', 'ELOOP', 'EISDIR', 'EEXIST')) throw error;
    outcome.refused += 1;
  }
}

async function swappedWhile(work: (root: string, secretFolder: string) => Promise<void>): Promise<void> {
  await using folder = await temporaryFolder();
  const [root, secretFolder] = [join(folder.path, 'tenant'), join(folder.path, 'other')];
  await mkdir(root);
  await mkdir(secretFolder);
  await writeFile(join(secretFolder, 'secret.md'), secret);
  const swapper = new Worker(new URL('./link-swapper.ts', import.meta.url), {
    workerData: { root, secretFolder },
    execArgv: ['--conditions=@concierge/source'],
  });
  await once(swapper, 'message');
  try {
    await work(root, secretFolder);
  } finally {
    swapper.postMessage('stop');
    await once(swapper, 'exit');
  }
}

describe('paths whose parts are swapped for links while they are walked', () => {
  it('never lead to the content behind the links', async () => {
    await swappedWhile(async (root) => {
      const files = new TenantFiles({ root });
      const outcome: Outcome = { own: 0, refused: 0, leaked: 0 };
      // Longer on a machine that lets the swapper run seldom.
      for (let read = 0; read < reads || (read < 100 * reads && (outcome.own === 0 || outcome.refused === 0)); read += 1) {
        await count(outcome, async () => (await files.readText(read % 2 === 0 ? 'file' : 'folder/secret.md')).text);
      }
      expect(outcome.leaked).toBe(0);
      expect(outcome.own).toBeGreaterThan(0);
      expect(outcome.refused).toBeGreaterThan(0);
    });
  });

  it('lead there when they are checked first and read afterwards: the swapper is fast enough', async () => {
    await swappedWhile(async (root) => {
      const outcome: Outcome = { own: 0, refused: 0, leaked: 0 };
      const home = await realpath(root);
      for (let read = 0; read < reads * 200 && outcome.leaked === 0; read += 1) {
        await count(outcome, async () => {
          const path = join(root, read % 2 === 0 ? 'file' : 'folder/secret.md');
          if (!(await realpath(path)).startsWith(home)) throw new AppError('not_found');
          return readFile(path, 'utf8');
        });
      }
      expect(outcome.leaked).toBeGreaterThan(0);
    });
  });

  it('are not written through, nor emptied through', async () => {
    await swappedWhile(async (root, secretFolder) => {
      const files = new TenantFiles({ root });
      const outcome: Outcome = { own: 0, refused: 0, leaked: 0 };
      for (let write = 0; write < reads / 40; write += 1) {
        await count(outcome, async () => (await files.writeText('folder/secret.md', 'overwritten')).etag);
        await count(outcome, async () => (await files.writeText('file', 'overwritten')).etag);
        await count(outcome, async () => {
          await files.appendText('file', 'overwritten');
          return '';
        });
        await count(outcome, async () => {
          await files.remove('folder/secret.md');
          return '';
        });
        await count(outcome, async () => String(await files.sweep(-60_000)));
      }
      expect(await readFile(join(secretFolder, 'secret.md'), 'utf8')).toBe(secret);
      expect(await readdir(secretFolder)).toEqual(['secret.md']);
    });
  });
});
