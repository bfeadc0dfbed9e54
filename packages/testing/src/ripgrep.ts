import { execFile, spawnSync } from 'node:child_process';
import { promisify } from 'node:util';
import { mustRunAll } from './config.ts';

const NOTHING_FOUND = 1;

/**
 * Whether this machine has ripgrep, for `describe.skip`: reports loudly on stderr what is left out when it has none.
 * @throws with CI=true, where nothing may be left out
 */
export function canRunRipgrep(): boolean {
  if (spawnSync('rg', ['--version']).status === 0) return true;
  const missing = 'no ripgrep on PATH: every test that compares with it is SKIPPED (apt install ripgrep)';
  if (mustRunAll) throw new Error(missing);
  process.stderr.write(`\n${missing}\n\n`);
  return false;
}

/** Lines that ripgrep prints in a folder; none when it finds nothing. */
export async function runRipgrep(folder: string, args: readonly string[]): Promise<string[]> {
  try {
    const { stdout } = await promisify(execFile)('rg', ['--no-config', ...args], { cwd: folder });
    return stdout.split('\n').slice(0, -1);
  } catch (error) {
    if (typeof error === 'object' && error !== null && 'code' in error && error.code === NOTHING_FOUND) return [];
    throw error;
  }
}
