import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { promisify } from 'node:util';

const runProgram = promisify(execFile);

/**
 * Processes of this machine whose command line has `marker`; those in containers are processes of this machine, too.
 */
export async function processesWith(marker: string): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/u.test(name));
  const lines = await Promise.all(pids.map(async (pid) => await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')));
  return lines.filter((line) => line.includes(marker)).map((line) => line.split('\0').join(' ').trim());
}

/** Containers, running or not, that carry a tenant's name in one of their labels. */
export async function containersOf(tenantId: string): Promise<string[]> {
  const { stdout } = await runProgram('docker', ['ps', '--all', '--no-trunc', '--format', '{{.ID}} {{.Labels}}']);
  return stdout.split('\n').filter((line) => line.includes(tenantId));
}
