// Refuses what walks or removes whole trees by path in the packages that handle tenants' files: a command of a tenant
// can put a link in place of a folder meanwhile. `folder-tree.ts` and `tree-walk.ts` of packages/files do the same over
// open descriptors.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const folders = ['packages/files/src', 'packages/tenant/src', 'packages/cli/src'];
/** With `recursive` in their options; and what is recursive by itself. */
const walks =
  /\b(?:(?:rm|rmSync|rmdir|rmdirSync|readdir|readdirSync|opendir|opendirSync)\([^;]*?\brecursive: true|(?:cp|cpSync|glob|globSync)\()/gu;

/** One line for each place, as `file:line: …`. */
export function findWalksByPath(file, source) {
  return [...source.matchAll(walks)].map(({ 0: text, index }) => {
    const line = source.slice(0, index).split('\n').length;
    return `${file}:${line}: ${text.slice(0, text.indexOf('('))} goes by path; use removeFolderIn or walkTree of packages/files`;
  });
}

function sourcesIn(folder) {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
    .map((name) => join(folder, name));
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const found = folders.flatMap(sourcesIn).flatMap((file) => findWalksByPath(file, readFileSync(file, 'utf8')));
  for (const line of found) process.stdout.write(`${line}\n`);
  process.exitCode = found.length === 0 ? 0 : 1;
}
