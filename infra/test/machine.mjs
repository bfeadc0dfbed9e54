// What the tests want from the machine beyond Node, and what is not there.
import { existsSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { whyNotFromPackages } from '../sandbox/packages-image.mjs';
import { findProgram, run } from '../start/commands.mjs';
import { dockerAnswers } from '../start/redis-container.mjs';
import { installSystemPackage } from '../start/system-packages.mjs';

const PACKAGED_POSTGRES = '/usr/lib/postgresql';
const IMAGE_TIMEOUT_MS = 15 * 60_000;

const imageScript = fileURLToPath(new URL('../sandbox/build.mjs', import.meta.url));

export function hasPostgres() {
  if (findProgram('postgres') !== null) return true;
  return existsSync(PACKAGED_POSTGRES) && readdirSync(PACKAGED_POSTGRES).length > 0;
}

const wanted = [
  { name: 'PostgreSQL', tests: 'the index in PostgreSQL', has: async () => hasPostgres() },
  {
    name: 'Chromium',
    tests: 'the console in a browser',
    has: async () => findProgram('chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome') !== null,
  },
  { name: 'bubblewrap', tests: 'the sandbox that needs no engine', has: async () => findProgram('bwrap') !== null },
  { name: 'ripgrep', tests: 'searching in files', has: async () => findProgram('rg') !== null },
  {
    name: 'Python with requests',
    tests: 'the example in Python',
    has: async () => (await run('python3', ['-c', 'import requests'], { timeoutMs: 60_000 })).ok,
  },
  { name: 'openssl', tests: 'Redis over TLS', has: async () => findProgram('openssl') !== null },
  { name: 'faketime', tests: 'clocks that disagree', has: async () => findProgram('faketime') !== null },
  {
    name: 'Helm',
    tests: 'the chart for Kubernetes',
    has: async () => (process.platform === 'linux' && process.arch === 'x64') || findProgram('helm') !== null,
  },
  { name: 'promtool', tests: 'the alert rules of Prometheus', has: async () => findProgram('promtool') !== null },
  { name: 'Docker engine', tests: 'the sandbox in containers', has: dockerAnswers },
];

/** Redis is what no test of the path of a turn can do without: found, or installed where that asks for no password. */
export async function ensureRedis() {
  if (findProgram('redis-server') !== null) return null;
  const refused = await installSystemPackage('redis');
  return findProgram('redis-server') === null ? `no redis-server on PATH, and ${refused ?? 'the package brought none'}` : null;
}

/**
 * The image of the sandbox, as this checkout's recipe makes it: there already, or built; from Debian packages where
 * that is possible, since it is the way that asks least of a network. Resolves with null, or with a line that states
 * why there is none.
 */
export async function ensureSandboxImage() {
  if (!(await dockerAnswers())) return null;
  const way = whyNotFromPackages() === null ? ['--from-packages'] : [];
  const { ok, stdout, stderr } = await run(process.execPath, [imageScript, ...way], { timeoutMs: IMAGE_TIMEOUT_MS });
  if (!ok) return `no sandbox image: not tested is the sandbox in containers (${stderr.trim()})`;
  process.stdout.write(`${stdout.trim().split('\n').at(-1)}\n`);
  return null;
}

/** What is missing, one line each. */
export async function missingParts() {
  const lines = await Promise.all(
    wanted.map(async ({ name, tests, has }) => ((await has()) ? [] : [`no ${name}: not tested is ${tests}`])),
  );
  return lines.flat();
}

/** Which versions the tests run with, for readers of the output of another machine. */
export async function describeMachine() {
  const redis = await run('redis-server', ['--version']);
  return `Node ${process.versions.node}, Redis ${/v=(\S+)/u.exec(redis.stdout)?.[1] ?? 'none'}, ${process.platform}-${process.arch}`;
}
