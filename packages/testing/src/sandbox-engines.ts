import { spawnSync } from 'node:child_process';
import { mustRunAll } from './config.ts';

/** What the sandbox suite runs its containers from; built by infra/sandbox. */
const image = 'concierge-sandbox';
/** Only an engine that hangs takes this long: a busy machine is no failure. */
const timeoutMs = 120_000;

/**
 * Whether this machine has a Docker engine with the sandbox image, for `describe.skip`: reports loudly on stderr what
 * is left out when it has none. @throws with CI=true, where nothing may be left out
 */
export function canRunDocker(): boolean {
  return canRun(['docker', 'image', 'inspect', image], `no Docker engine with the image ${image} (infra/sandbox)`);
}

/** The same for bubblewrap, which must be installed and allowed to make namespaces. */
export function canRunBubblewrap(): boolean {
  return canRun(
    ['bwrap', '--unshare-pid', '--unshare-net', '--ro-bind', '/', '/', 'true'],
    'no usable bubblewrap (apt install bubblewrap)',
  );
}

/**
 * Whether a command succeeds here, for `describe.skip`: reports loudly on stderr what is missing when it does not.
 * @throws with CI=true, where nothing may be left out
 */
export function canRun([program = '', ...args]: readonly string[], missing: string): boolean {
  if (spawnSync(program, args, { stdio: 'ignore', timeout: timeoutMs }).status === 0) return true;
  const message = `${missing}: every test that needs one is SKIPPED`;
  if (mustRunAll) throw new Error(message);
  process.stderr.write(`\n${message}\n\n`);
  return false;
}
