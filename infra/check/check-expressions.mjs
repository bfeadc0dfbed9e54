// `node infra/check/check-expressions.mjs [folder]`: fails when a regular expression can take more than time in
// proportion to its text.
import { createHash } from 'node:crypto';
import { globSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import process from 'node:process';

// Asked before recheck is loaded: JavaScript, not one of its programs for single platforms.
process.env.RECHECK_BACKEND = 'pure';
const { findingsIn } = await import('./expressions.mjs');

const folder = process.argv[2] ?? '.';
const sources = '{packages,services,infra}/**/*.{ts,tsx,mjs,cjs}';
/** Tests, and what is run on the project's own files alone: what they match is written by its developers. */
const leftOut = new Set(['node_modules', 'dist', 'test', 'fixtures', 'testing', 'acceptance']);
const forDevelopers = /^infra\/(?:bench|chaos|check|deploy|dev|docs|reading)\//u;
const isLeftOut = (path) =>
  path.split('/').some((part) => leftOut.has(part)) || forDevelopers.test(path) || path.includes('.test.') || path.endsWith('.d.ts');

/** What was found out before, of this version of recheck: looking at all of them takes a minute. */
const { version } = createRequire(import.meta.url)('recheck/package.json');
const rules = createHash('sha256')
  .update(version)
  .update(readFileSync(new URL('expressions.mjs', import.meta.url)))
  .digest('hex');
const cacheFile = join('.cache', 'expressions.json');
const verdicts = new Map(readCache());

function readCache() {
  try {
    const cache = JSON.parse(readFileSync(cacheFile, 'utf8'));
    return cache.rules === rules ? cache.verdicts : [];
  } catch {
    return [];
  }
}

let count = 0;
for (const path of globSync(sources, { cwd: folder, exclude: isLeftOut }).toSorted()) {
  if (isLeftOut(path)) continue;
  const source = readFileSync(join(folder, path), 'utf8');
  for (const { line, text, verdict } of findingsIn(source, { isJsx: path.endsWith('x'), verdicts })) {
    count += 1;
    process.stdout.write(`${path}:${line}: ${text === undefined ? 'this expression' : `/${text}/`} ${verdict}\n`);
  }
}
mkdirSync('.cache', { recursive: true });
const fresh = `${cacheFile}.${process.pid}`;
writeFileSync(fresh, JSON.stringify({ rules, verdicts: [...verdicts] }));
renameSync(fresh, cacheFile);
if (count > 0) {
  process.stdout.write(
    'Make it linear (packages/contract/src/values/text.ts), match with RE2, or say why it is bounded in a comment that begins with `bounded-expression:`.\n',
  );
  process.exitCode = 1;
}
