// The console's files, built only when their sources have changed.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../bootstrap.mjs';
import { run } from './commands.mjs';
import { complain, say } from './terminal.mjs';

const BUILD_TIMEOUT_MS = 5 * 60_000;
const folder = join(root, 'services', 'ui');
const stampFile = join(root, '.cache', 'ui-build');
const generated = new Set(['node_modules', 'dist']);

function filesUnder(path) {
  if (!existsSync(path)) return [];
  return readdirSync(path, { withFileTypes: true })
    .filter((entry) => !generated.has(entry.name) && !entry.name.endsWith('.tsbuildinfo'))
    .flatMap((entry) => (entry.isDirectory() ? filesUnder(join(path, entry.name)) : [join(path, entry.name)]))
    .sort();
}

/** Names, sizes and times of every source: reading them all would cost more than it saves. */
function fingerprint() {
  const hash = createHash('sha256').update(readFileSync(join(root, 'pnpm-lock.yaml')));
  for (const file of [...filesUnder(folder), ...filesUnder(join(root, 'packages', 'contract', 'src'))]) {
    const { size, mtimeMs } = statSync(file);
    hash.update(`${file}\0${size}\0${mtimeMs}\n`);
  }
  return hash.digest('hex');
}

/** Builds the console when needed. A failed build is reported and does not hold up the rest: the API works without the page. */
export async function buildUi(env) {
  const print = fingerprint();
  const isCurrent = existsSync(stampFile) && readFileSync(stampFile, 'utf8') === print && existsSync(join(folder, 'dist'));
  if (isCurrent) return;
  say('Building the console (once; again only when its sources change) ...');
  const { ok, stdout, stderr } = await run(process.execPath, ['build.mjs'], { timeoutMs: BUILD_TIMEOUT_MS, env, cwd: folder });
  if (!ok) {
    complain(`The console could not be built; the API works without it.\n${(stderr || stdout).trim().split('\n').slice(-15).join('\n')}`);
    return;
  }
  mkdirSync(join(root, '.cache'), { recursive: true });
  writeFileSync(stampFile, print);
}
