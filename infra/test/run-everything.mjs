// Checks first, then each kind of tests in a Jest of its own: what one kind leaves running cannot disturb the next.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from '../bootstrap.mjs';
import { runChecks } from '../check/run-checks.mjs';
import { buildUi, buildWidget } from '../start/ui-build.mjs';
import { describeMachine, ensureRedis, ensureSandboxImage, hasPostgres, missingParts } from './machine.mjs';
import { closingLine, noReport, readOutcome, sumOutcomes } from './outcome.mjs';
import { findKind, watchAndRun } from './watch.mjs';

/**
 * `serial`: its tests kill processes and watch clocks, and need the machine for themselves. `filesMore`: files at once
 * beyond one for each processor, where tests wait more than they compute. `named`: runs only when it is named.
 */
const kinds = {
  unit: {},
  integration: { filesMore: 1 },
  // Every case of the contract against both indexes, side by side.
  contract: { filesMore: 1, projects: () => (hasPostgres() ? ['contract', 'contract-postgres'] : ['contract']) },
  // The same over a Redis Cluster: six servers for each file, so only where it is named.
  'contract-cluster': { named: true },
  // The same with gateways and workers on two mounts of a network file system: needs Debian's glusterfs-server.
  'contract-network': { named: true },
  e2e: { filesMore: 1 },
  chaos: { serial: true },
  // The images and docker-compose.yml in a real engine.
  stack: { serial: true },
  // The same at length, so only where it is named.
  deploy: { serial: true, named: true },
};

/** As services have it: what was compiled once, types stripped, is loaded from there. */
const compileCache = join(root, '.cache/compile');

/** What `packages/acceptance/e2e/screens.test.ts` keeps. */
const screens = join(root, '.cache/screens');

const print = (text) => process.stdout.write(`${text}\n`);
const title = (text) => print(`\n== ${text} ==`);

/** How many files at once; a number on the command line takes precedence. */
function workersFor(kind, jestArgs) {
  if (jestArgs.some((arg) => /^(?:-i|--runInBand|-w|--maxWorkers)/u.test(arg))) return [];
  const { serial = false, filesMore = 0 } = kinds[kind];
  return serial ? ['--runInBand'] : ['--maxWorkers', String(availableParallelism() + filesMore)];
}

/** Runs one kind; resolves with its outcome. */
async function runKind(kind, jestArgs) {
  title(kind);
  const folder = mkdtempSync(join(tmpdir(), 'concierge-test-'));
  const reportFile = join(folder, 'report.json');
  const options = [
    '--config',
    'jest.config.mjs',
    '--selectProjects',
    ...(kinds[kind].projects?.() ?? [kind]),
    '--passWithNoTests',
    '--json',
    '--outputFile',
    reportFile,
  ];
  const env = { ...process.env, NODE_COMPILE_CACHE: compileCache, NODE_ENV: 'test' };
  const child = spawn(process.execPath, ['infra/node_modules/jest/bin/jest.js', ...options, ...workersFor(kind, jestArgs), ...jestArgs], {
    // With --json Jest prints the report to standard output as well, unless it has a file: users read standard error.
    stdio: ['ignore', 'ignore', 'inherit'],
    env,
  });
  await new Promise((resolve) => child.on('close', resolve));
  const outcome = readReport(reportFile);
  rmSync(folder, { recursive: true, force: true });
  return { kind, ...outcome };
}

function readReport(file) {
  try {
    return readOutcome(JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    return noReport;
  }
}

/** Kinds that were named, in their order, and the rest for Jest. */
function parse(args) {
  const named = Object.keys(kinds).filter((kind) => args.includes(kind));
  return {
    all: named.length === 0,
    named: named.length === 0 ? Object.keys(kinds).filter((kind) => kinds[kind].named !== true) : named,
    jestArgs: args.filter((arg) => !(arg in kinds)),
  };
}

function printSkipped(skipped, missing) {
  if (skipped.length === 0 && missing.length === 0) return;
  title('NOT TESTED on this machine');
  for (const line of missing) print(`  ${line}`);
  for (const name of skipped) print(`  skipped: ${name}`);
}

/** What a browser loads, for the kinds that do: their builds decide whether anything has changed. */
async function buildPages(named) {
  if (named.includes('e2e')) await buildUi(process.env);
  if (named.includes('e2e') || named.includes('integration')) await buildWidget(process.env);
}

/**
 * Runs the tests of a path again after each change of what they are made of, until a signal ends it; never resolves.
 */
async function watchTests(args) {
  const path = args.find((arg) => !(arg in kinds) && !arg.startsWith('-'));
  const kind = args.find((arg) => arg in kinds) ?? findKind(path);
  const jestArgs = args.filter((arg) => !(arg in kinds));
  const noRedis = kind === 'unit' ? null : await ensureRedis();
  if (noRedis !== null) print(`FAILED: ${noRedis}`);
  await watchAndRun(root, path, async () => {
    await buildPages([kind]);
    print(closingLine(await runKind(kind, jestArgs)));
  });
}

/**
 * Checks (when no kind was named), then the kinds; without Redis only what needs none. The image is made beside what
 * does not need it.
 */
async function runAll({ all, named, jestArgs }, { noRedis, missing }) {
  const outcomes = [];
  const image = named.some((kind) => kind !== 'unit') ? ensureSandboxImage() : null;
  if (all) {
    title('checks');
    outcomes.push({ kind: 'checks', ...(await runChecks()), skipped: [] });
  }
  await buildPages(named);
  for (const kind of noRedis === null ? named : ['unit']) {
    if (kind !== 'unit') await image;
    outcomes.push(await runKind(kind, jestArgs));
    if (kind === 'e2e' && existsSync(screens)) print(`screens of the console: ${screens}`);
  }
  const noImage = await image;
  if (noImage !== null) missing.push(noImage);
  return noRedis === null ? outcomes : [...outcomes, { kind: 'the rest', ...noReport }];
}

/** Runs what `args` name; resolves with the exit code. With CI=true nothing may be left out. */
export async function runEverything(args) {
  if (args.includes('--watch')) return watchTests(args.filter((arg) => arg !== '--watch'));
  const noRedis = await ensureRedis();
  print(await describeMachine());
  if (noRedis !== null) print(`FAILED: ${noRedis}`);
  const missing = await missingParts();
  for (const line of missing) print(`SKIPPED: ${line}`);
  const outcomes = await runAll(parse(args), { noRedis, missing });
  const total = sumOutcomes(outcomes);
  printSkipped(total.skipped, missing);
  title('all');
  for (const outcome of outcomes) print(`${outcome.kind.padEnd(16)} ${closingLine(outcome)}`);
  const leftOut = process.env.CI === 'true' && total.skipped.length > 0;
  if (leftOut) print('With CI=true nothing may be skipped.');
  print('');
  print(closingLine(total));
  return total.failed > 0 || leftOut ? 1 : 0;
}
