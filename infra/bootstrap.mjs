// What runs before anything is installed: only what Node 20 itself brings may be imported here.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { installPackages } from './install.mjs';
import { mindUsage } from './usage.mjs';

/** The folder of the repository. */
export const root = dirname(dirname(fileURLToPath(import.meta.url)));

const NEEDED_MAJOR = 24;
const OLDEST_MAJOR = 20;
/** A Ctrl-C reaches a process group several times (terminal, npm, this wrapper): what comes within this is one. */
const SAME_SIGNAL_MS = 500;

const readMajor = (version) => Number(version.split('.', 1)[0]);
const bundledNode = join(root, 'node_modules', '.bin', 'node');
const stampFile = join(root, 'node_modules', '.concierge-install');

/** What the installed packages were made from: the lockfile and the machine. */
function wantedStamp() {
  const lockfile = readFileSync(join(root, 'pnpm-lock.yaml'));
  return `${createHash('sha256').update(lockfile).digest('hex')} ${process.platform}-${process.arch}\n`;
}

const isInstalled = (stamp) => existsSync(stampFile) && readFileSync(stampFile, 'utf8') === stamp;

function fail(line) {
  process.stderr.write(`${line}\n`);
  process.exit(1);
}

async function ensureInstalled() {
  const stamp = wantedStamp();
  if (isInstalled(stamp)) return;
  await installPackages(root).catch((error) => fail(error.message));
  mkdirSync(dirname(stampFile), { recursive: true });
  writeFileSync(stampFile, stamp);
}

/** Calls `listener` when npm, which started this command, is gone without having passed on a signal (kill -9). */
export function whenNpmIsGone(listener) {
  if (process.env.npm_lifecycle_event === undefined) return;
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    listener();
  }, 1000);
  timer.unref();
}

/** Runs this same command under Node 24 and ends with its exit code; signals are handed on. */
function runUnderBundledNode(script, flags) {
  const child = spawn(bundledNode, [...flags, script, ...process.argv.slice(2)], {
    stdio: 'inherit',
    env: { ...process.env, PATH: pathWithTools() },
  });
  let lastMs = 0;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, () => {
      if (Date.now() - lastMs > SAME_SIGNAL_MS) child.kill(signal);
      lastMs = Date.now();
    });
  }
  whenNpmIsGone(() => child.kill('SIGTERM'));
  child.on('error', (error) => fail(`Cannot run ${bundledNode}: ${error.message}`));
  child.on('exit', (code, signal) => process.exit(signal === null ? code : 1));
}

/** PATH with Node 24 and the tools of infra/ in front, for whatever is started from here. */
export function pathWithTools() {
  const own = [join(root, 'node_modules', '.bin'), join(root, 'infra', 'node_modules', '.bin')];
  const rest = (process.env.PATH ?? '').split(delimiter).filter((folder) => !own.includes(folder));
  return [...own, ...rest].join(delimiter);
}

/**
 * Answers --help and wrong flags, installs what is missing, then makes sure that Node 24 runs: calls `main` in this
 * process, or runs the same script again under the Node that was installed, with `flags`.
 */
export async function bootstrap(scriptUrl, main, { flags = [] } = {}) {
  mindUsage(scriptUrl);
  const major = readMajor(process.versions.node);
  if (major < OLDEST_MAJOR) fail(`Concierge needs Node ${OLDEST_MAJOR} or newer to start; this is ${process.versions.node}.`);
  await ensureInstalled();
  if (major < NEEDED_MAJOR) {
    if (existsSync(bundledNode)) return runUnderBundledNode(fileURLToPath(scriptUrl), flags);
    fail(
      `Concierge runs on Node ${NEEDED_MAJOR}, and no npm package carries it for ${process.platform}-${process.arch}: install Node ${NEEDED_MAJOR} (https://nodejs.org), then try again.`,
    );
  }
  process.env.PATH = pathWithTools();
  await main();
}
