import { mkdirSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { parentPort } from 'node:worker_threads';

/**
 * Plays a tenant who swaps folders for links out of the workspace while sandboxes are made over it. Posts once it runs.
 */
const [root = '', outside = '', ...names] = process.argv.slice(2);

let running = true;
parentPort?.on('message', () => {
  running = false;
});

/** The process that makes a sandbox makes folders here as well, so any step may fail. */
function attempt(step: () => void): void {
  try {
    step();
  } catch {
    // The next round begins anew.
  }
}

function swapName(name: string): void {
  attempt(() => {
    renameSync(join(root, name), join(root, `away-${name}`));
  });
  attempt(() => {
    symlinkSync(outside, join(root, name));
  });
  attempt(() => {
    rmSync(join(root, name));
  });
  attempt(() => {
    renameSync(join(root, `away-${name}`), join(root, name));
  });
  attempt(() => {
    mkdirSync(join(root, name));
  });
}

function swap(): void {
  for (let round = 0; round < 20; round += 1) names.forEach(swapName);
  if (running) setImmediate(swap);
  else process.exit(0);
}
parentPort?.postMessage('running');
swap();
