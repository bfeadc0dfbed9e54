// Installing a program with the system's package manager, where that asks for no password.
import { findProgram, run } from './commands.mjs';
import { say } from './terminal.mjs';

const INSTALL_TIMEOUT_MS = 5 * 60_000;

const managers = [
  { program: 'apt-get', refresh: ['update', '-qq'], install: ['install', '-y', '-qq', '--no-install-recommends'], needsRoot: true },
  { program: 'dnf', install: ['install', '-y', '-q'], needsRoot: true },
  { program: 'apk', install: ['add', '--no-cache', '-q'], needsRoot: true },
  { program: 'pacman', refresh: ['-Sy', '--noconfirm'], install: ['-S', '--noconfirm', '--needed'], needsRoot: true },
  { program: 'brew', install: ['install', '--quiet'], needsRoot: false },
];

/** What each manager calls the program. */
const packageNames = {
  redis: { 'apt-get': 'redis-server', dnf: 'redis', apk: 'redis', pacman: 'valkey', brew: 'redis' },
  bubblewrap: { 'apt-get': 'bubblewrap', dnf: 'bubblewrap', apk: 'bubblewrap', pacman: 'bubblewrap' },
  debootstrap: { 'apt-get': 'debootstrap' },
};

async function withoutPassword(manager) {
  if (!manager.needsRoot) return process.getuid?.() === 0 ? null : [];
  if (process.getuid?.() === 0) return [];
  const sudo = await run('sudo', ['-n', 'true'], { timeoutMs: 3000 });
  return sudo.ok ? ['sudo', '-n'] : null;
}

/** The line the user has to type, for the package manager of this machine. */
export function installHint(what) {
  const manager = managers.find(({ program }) => findProgram(program) !== null);
  if (manager === undefined || packageNames[what][manager.program] === undefined) return `install ${what}`;
  return `${manager.needsRoot ? 'sudo ' : ''}${manager.program} ${manager.install[0]} ${packageNames[what][manager.program]}`;
}

/** Package managers run one at a time: each takes a lock and fails when another has it. */
let previous = Promise.resolve();

/** Tries to install `what`; resolves with null when it worked, else with the reason why not. */
export function installSystemPackage(what) {
  const mine = previous.then(() => install(what));
  previous = mine.catch(() => null);
  return mine;
}

async function install(what) {
  const manager = managers.find(({ program }) => findProgram(program) !== null);
  if (manager === undefined) return 'no package manager was found';
  const name = packageNames[what][manager.program];
  if (name === undefined) return `${manager.program} has no package of ${what}`;
  const prefix = await withoutPassword(manager);
  if (prefix === null) return `${manager.program} needs a password`;
  say(`Installing ${name} with ${manager.program} ...`);
  const [command, ...before] = [...prefix, manager.program];
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C' };
  if (manager.refresh !== undefined) await run(command, [...before, ...manager.refresh], { timeoutMs: INSTALL_TIMEOUT_MS, env });
  const result = await run(command, [...before, ...manager.install, name], { timeoutMs: INSTALL_TIMEOUT_MS, env });
  return result.ok ? null : `${manager.program} failed: ${result.stderr.trim().split('\n').at(-1)}`;
}
