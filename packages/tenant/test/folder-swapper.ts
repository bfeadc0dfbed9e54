import { renameSync, symlinkSync, unlinkSync } from 'node:fs';
import { argv, stdout } from 'node:process';

/**
 * Plays a command in a tenant's workspace, which keeps its own folder open whatever that is renamed to: swaps the
 * folders `d0`, `d1`, … of its working directory for links to `target` and back, without end. Prints a line once it
 * runs.
 */
const [, , target = '', folders = ''] = argv;

function attempt(step: () => void): boolean {
  try {
    step();
    return true;
  } catch {
    return false;
  }
}

stdout.write('running\n');
for (;;) {
  for (let at = 0; at < Number(folders); at += 1) {
    const [name, aside] = [`d${String(at)}`, `aside${String(at)}`];
    if (!attempt(() => renameSync(name, aside))) continue;
    attempt(() => symlinkSync(target, name));
    attempt(() => unlinkSync(name));
    attempt(() => renameSync(aside, name));
  }
}
