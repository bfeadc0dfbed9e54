// Runs a TypeScript file of the repository with the packages' sources instead of their compiled output.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './bootstrap.mjs';

/** Makes Node take the packages' sources. */
export const sourceFlag = '--conditions=@concierge/source';

/** Runs `script` with the rest of this command's arguments and ends with its exit code. */
export function runTypeScript(script, args = process.argv.slice(2)) {
  if (!existsSync(join(root, script))) {
    process.stderr.write(`${script} does not exist.\n`);
    process.exit(1);
  }
  const env = { ...process.env, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? join(root, '.cache', 'compile') };
  const child = spawn(process.execPath, [sourceFlag, join(root, script), ...args], { stdio: 'inherit', env });
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal));
  return new Promise((resolve) => {
    child.on('exit', (code, signal) => {
      process.exitCode = signal === null ? code : 1;
      resolve();
    });
  });
}
