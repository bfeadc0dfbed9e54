import { linkSync, mkdirSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { z } from 'zod';

/**
 * Plays the tenant whose shell swaps names for links while the service reads them. Swaps `file` between an own file, a
 * symbolic link and a hard link to the secret, and `folder` between an own folder and a link to the folder of the
 * secret. Posts once it runs.
 */
const { root, secretFolder } = z.object({ root: z.string(), secretFolder: z.string() }).parse(workerData);
const secret = join(secretFolder, 'secret.md');

let running = true;
parentPort?.on('message', () => {
  running = false;
});

/** The service under test makes and removes names here as well, so any step may fail. */
function attempt(step: () => void): void {
  try {
    step();
  } catch {
    for (const name of ['folder', 'linked', 'evil']) rmSync(join(root, name), { recursive: true, force: true, maxRetries: 100 });
  }
}

function swapFile(): void {
  writeFileSync(join(root, 'own'), 'own');
  renameSync(join(root, 'own'), join(root, 'file'));
  symlinkSync(secret, join(root, 'evil'));
  renameSync(join(root, 'evil'), join(root, 'file'));
  linkSync(secret, join(root, 'evil'));
  renameSync(join(root, 'evil'), join(root, 'file'));
  unlinkSync(join(root, 'file'));
}

function swapFolder(): void {
  mkdirSync(join(root, 'real'), { recursive: true });
  writeFileSync(join(root, 'real', 'secret.md'), 'own');
  renameSync(join(root, 'real'), join(root, 'folder'));
  renameSync(join(root, 'folder'), join(root, 'real'));
  symlinkSync(secretFolder, join(root, 'linked'));
  renameSync(join(root, 'linked'), join(root, 'folder'));
  unlinkSync(join(root, 'folder'));
}

function swap(): void {
  for (let round = 0; round < 50; round += 1) {
    attempt(swapFile);
    attempt(swapFolder);
  }
  if (running) setImmediate(swap);
  else process.exit(0);
}
parentPort?.postMessage('running');
swap();
