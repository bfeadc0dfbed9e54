import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { SandboxSettings } from '@concierge/runtime';
import { ok, warning, type Finding } from './finding.ts';

const PROGRAM_TIMEOUT_MS = 5000;
const withoutSandbox = 'bash and exec answer with an error';

const runProgram = promisify(execFile);

/** What it printed; undefined when it failed or is not there. */
async function readOutput(command: string, args: readonly string[]): Promise<string | undefined> {
  return await runProgram(command, args, { timeout: PROGRAM_TIMEOUT_MS }).then(
    ({ stdout }) => stdout.trim(),
    () => undefined,
  );
}

/** Undefined when Docker can be the sandbox of this machine, else what is missing. */
async function whyNotDocker({ image, runtime }: SandboxSettings): Promise<string | undefined> {
  const runtimes = await readOutput('docker', ['info', '--format', '{{json .Runtimes}}']);
  // Without an engine, the client prints only its own data.
  if (runtimes === undefined || !runtimes.startsWith('{')) return 'no Docker engine answers';
  if ((await readOutput('docker', ['image', 'inspect', '--format', '{{.Id}}', image])) === undefined) {
    return `the Docker engine has no image ${image} (node infra/sandbox/build.mjs makes it)`;
  }
  if (runtime !== undefined && !runtimes.includes(JSON.stringify(runtime))) return `the Docker engine has no runtime ${runtime}`;
  return undefined;
}

async function whyNotBubblewrap(): Promise<string | undefined> {
  if ((await readOutput('bwrap', ['--version'])) === undefined) return 'bubblewrap is not installed';
  const namespaces = ['--unshare-ipc', '--unshare-pid', '--unshare-net', '--unshare-uts', '--die-with-parent', '--cap-drop', 'ALL'];
  const asUser = process.getuid?.() === 0 ? [] : ['--unshare-user', '--disable-userns'];
  const places = ['--ro-bind', '/', '/', '--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp'];
  const made = await readOutput('bwrap', [...namespaces, ...asUser, ...places, 'true']);
  return made === undefined ? 'bubblewrap cannot make a sandbox here (are user namespaces switched off?)' : undefined;
}

/** What a worker on this machine would choose; the workers of another machine choose for themselves. */
export async function checkSandbox(choice: SandboxSettings): Promise<Finding> {
  if (choice.kind === 'off') return warning(`switched off: ${withoutSandbox}`);
  const missing: string[] = [];
  if (choice.kind !== 'bubblewrap') {
    const reason = await whyNotDocker(choice);
    if (reason === undefined)
      return ok(`Docker, image ${choice.image}${choice.runtime === undefined ? '' : `, runtime ${choice.runtime}`}`);
    missing.push(reason);
  }
  if (choice.kind !== 'docker') {
    const reason = await whyNotBubblewrap();
    if (reason === undefined) return ok(['bubblewrap', ...missing].join('; '));
    missing.push(reason);
  }
  return warning(`${missing.join('; ')}: ${withoutSandbox}`);
}
