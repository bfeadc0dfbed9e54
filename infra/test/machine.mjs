// What the tests want from the machine beyond Node, and what is not there.
import { existsSync, readdirSync } from 'node:fs';
import { findProgram, run } from '../start/commands.mjs';
import { installSystemPackage } from '../start/system-packages.mjs';

const PACKAGED_POSTGRES = '/usr/lib/postgresql';

export function hasPostgres() {
  if (findProgram('postgres') !== null) return true;
  return existsSync(PACKAGED_POSTGRES) && readdirSync(PACKAGED_POSTGRES).length > 0;
}

const wanted = [
  { name: 'PostgreSQL', tests: 'the index in PostgreSQL', has: async () => hasPostgres() },
  {
    name: 'Chromium',
    tests: 'the console in a browser',
    has: async () => findProgram('chromium', 'chromium-browser', 'google-chrome') !== null,
  },
];

/** Redis is what no test of the path of a turn can do without: found, or installed where that asks for no password. */
export async function ensureRedis() {
  if (findProgram('redis-server') !== null) return null;
  const refused = await installSystemPackage('redis');
  return findProgram('redis-server') === null ? `no redis-server on PATH, and ${refused ?? 'the package brought none'}` : null;
}

/** What is missing, one line each. */
export async function missingParts() {
  const lines = await Promise.all(
    wanted.map(async ({ name, tests, has }) => ((await has()) ? [] : [`no ${name}: not tested is ${tests}`])),
  );
  return lines.flat();
}

/** Which versions the tests run with, for whoever reads the output of another machine. */
export async function describeMachine() {
  const redis = await run('redis-server', ['--version']);
  return `Node ${process.versions.node}, Redis ${/v=(\S+)/u.exec(redis.stdout)?.[1] ?? 'none'}, ${process.platform}-${process.arch}`;
}
