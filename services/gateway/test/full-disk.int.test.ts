import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { temporaryDirectory } from '@concierge/testing';

const MIB = 1024 * 1024;
const main = fileURLToPath(new URL('full-disk-main.ts', import.meta.url));

/** Runs a program with a separate file system over a folder. */
async function runOnSmallDisk(program: string, folder: string): Promise<string> {
  const disk = ['--dev-bind', '/', '/', '--size', String(24 * MIB), '--tmpfs', folder];
  const node = [process.execPath, '--conditions=@concierge/source', '--disable-warning=ExperimentalWarning', program, folder];
  const { stdout } = await promisify(execFile)('bwrap', [...disk, '--die-with-parent', ...node], { timeout: 180_000 });
  return stdout;
}

describe('a gateway whose disk is full', () => {
  it('is not ready, asks to come back later, and goes on by itself once there is room', async () => {
    await using folder = await temporaryDirectory();
    expect(JSON.parse(await runOnSmallDisk(main, folder.path))).toEqual({
      full: { chat: [503, '2'], completion: [503, '2'], file: [503, '2'] },
      after: { chat: [200, null], completion: [200, null], file: [204, null] },
    });
  });
});
