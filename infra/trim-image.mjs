// `node infra/trim-image.mjs FOLDER`: removes from a deployed service what runs nowhere: sources and tests of our own
// packages, and of all packages the compiler, declarations and maps. Needs nothing that is installed.
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';

const folder = process.argv[2];
if (folder === undefined) throw new Error('usage: node infra/trim-image.mjs FOLDER');

/** A peer of a library that uses only its types. */
const compilers = /^(?:typescript|@typescript\+typescript-[\w-]+|@types\+[\w.-]+)@/u;
const declarations = /\.d\.[cm]?ts(?:\.map)?$|\.[cm]?[jt]s\.map$|\.tsbuildinfo$/u;
/** What a package of ours has beside what runs. */
const sources = /^(?:src|test|web|README\.md|tsconfig.*\.json|build\.mjs)$/u;
const tests = /\.test\.(?:js|mjs)$/u;

function manifestIn(path) {
  try {
    return JSON.parse(readFileSync(join(path, 'package.json'), 'utf8'));
  } catch {
    return {};
  }
}

function removeFiles(path, pattern) {
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    const file = join(path, entry.name);
    if (entry.isDirectory()) removeFiles(file, pattern);
    else if (entry.isFile() && pattern.test(entry.name)) rmSync(file);
  }
}

function trimOurs(path) {
  for (const name of readdirSync(path)) if (sources.test(name)) rmSync(join(path, name), { recursive: true });
  removeFiles(join(path, 'dist'), tests);
}

/** Packages of ours stand where pnpm copies them, each in a folder of its own. */
function packagesBelow(store) {
  return readdirSync(store)
    .filter((name) => name.startsWith('@concierge+'))
    .flatMap((name) => {
      const scope = join(store, name, 'node_modules/@concierge');
      return readdirSync(scope, { withFileTypes: true })
        .filter((entry) => entry.isDirectory())
        .map((entry) => join(scope, entry.name));
    });
}

if (!manifestIn(folder).name?.startsWith('@concierge/')) throw new Error(`${folder} is no deployed service`);
const store = join(folder, 'node_modules/.pnpm');
for (const name of readdirSync(store)) if (compilers.test(name)) rmSync(join(store, name), { recursive: true });
for (const path of [folder, ...packagesBelow(store)]) trimOurs(path);
removeFiles(folder, declarations);
