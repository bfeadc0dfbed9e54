import { linkSync, renameSync, symlinkSync, unlinkSync, writeFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { z } from 'zod';

/**
 * Plays the tenant whose shell swaps names for links while the service reads them. Swaps `file` between an own file, a symbolic link
 * and a hard link to the secret, and `folder` between an own folder and a link to the folder of the secret. Posts once it runs.
 */
const { root, secretFolder } = z.object({ root: z.string(), secretFolder: z.string() }).parse(workerData);
const secret = join(secretFolder, 'secret.md');
mkdirSync(join(root, 'real'), { recursive: true });
writeFileSync(join(root, 'real', 'secret.md'), 'own');
symlinkSync(secretFolder, join(root, 'linked'));

let running = true;
parentPort?.on('message', () => {
  running = false;
});

function swap(): void {
  for (let round = 0; round < 50; round += 1) {
    writeFileSync(join(root, 'own'), 'own');
    renameSync(join(root, 'own'), join(root, 'file'));
    symlinkSync(secret, join(root, 'evil'));
    renameSync(join(root, 'evil'), join(root, 'file'));
    linkSync(secret, join(root, 'evil'));
    renameSync(join(root, 'evil'), join(root, 'file'));
    unlinkSync(join(root, 'file'));
    renameSync(join(root, 'real'), join(root, 'folder'));
    renameSync(join(root, 'folder'), join(root, 'real'));
    renameSync(join(root, 'linked'), join(root, 'folder'));
    renameSync(join(root, 'folder'), join(root, 'linked'));
  }
  if (running) setImmediate(swap);
  else process.exit(0);
}
parentPort?.postMessage('running');
swap();
