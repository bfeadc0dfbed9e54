// The checks that need no running system: each is one tool, all run side by side.
import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';

const SHOWN_LINES = 80;

/** In the order in which they are started: the slow ones first. */
export const checks = [
  {
    name: 'types',
    commands: [
      ['tsc', '-b', '--pretty', 'false'],
      ['tsc', '-p', 'tsconfig.tests.json', '--pretty', 'false'],
      ['tsc', '-p', 'services/ui/web/tsconfig.json', '--pretty', 'false'],
    ],
  },
  // Slow on a first run only: verdicts are kept.
  { name: 'expressions', commands: [['node', 'infra/check/check-expressions.mjs']] },
  { name: 'lint', commands: [['oxlint', '--type-aware', '--format=unix', '--max-warnings=0']] },
  {
    name: 'architecture',
    commands: [['depcruise', '--config', '.dependency-cruiser.cjs', '--output-type', 'err', 'packages', 'services']],
  },
  { name: 'dead code', commands: [['knip', '--config', 'knip.json', '--no-progress', '--no-config-hints']] },
  { name: 'paths', commands: [['node', 'infra/check/paths-by-name.mjs']] },
  { name: 'words', commands: [['node', 'infra/check/words.mjs']] },
  { name: 'texts', commands: [['node', 'infra/check/catalog-texts.mjs']] },
  { name: 'layout', commands: [['node', 'infra/check/layout.mjs']] },
  { name: 'format', commands: [['oxfmt', '--check', '.']] },
];

/** Runs one tool; resolves with its exit code and what it printed. */
function runTool([command, ...args]) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    const heard = [];
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => heard.push(chunk));
    child.on('error', (error) => resolve({ code: 1, output: error.message }));
    child.on('close', (code) => resolve({ code: code ?? 1, output: Buffer.concat(heard).toString().trim() }));
  });
}

function shorten(output) {
  const lines = output.split('\n');
  if (lines.length <= SHOWN_LINES) return output;
  return [...lines.slice(0, SHOWN_LINES), `... and ${lines.length - SHOWN_LINES} lines more`].join('\n');
}

async function runCheck({ name, commands }) {
  const startedAt = Date.now();
  const results = [];
  for (const command of commands) results.push(await runTool(command));
  const seconds = ((Date.now() - startedAt) / 1000).toFixed(1);
  const bad = results.filter(({ code }) => code !== 0);
  process.stdout.write(`${bad.length === 0 ? 'ok    ' : 'FAILED'} ${name} (${seconds} s)\n`);
  for (const { output } of bad) process.stdout.write(`${shorten(output)}\n\n`);
  return bad.length === 0;
}

/** Runs all checks, a few at a time; prints each as it ends. Resolves with how many passed and failed. */
export async function runChecks() {
  const waiting = [...checks];
  const outcomes = [];
  const lanes = Array.from({ length: Math.max(2, availableParallelism()) }, async () => {
    for (let check = waiting.shift(); check !== undefined; check = waiting.shift()) outcomes.push(await runCheck(check));
  });
  await Promise.all(lanes);
  return { passed: outcomes.filter(Boolean).length, failed: outcomes.filter((good) => !good).length };
}
