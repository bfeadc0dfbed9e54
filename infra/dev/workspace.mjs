// Which packages of the workspace a package is made of.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Every package and service below `root`, as in `packages/turn`. */
export function allFolders(root) {
  return ['packages', 'services']
    .filter((group) => existsSync(join(root, group)))
    .flatMap((group) => readdirSync(join(root, group)).map((name) => `${group}/${name}`))
    .filter((folder) => existsSync(join(root, folder, 'package.json')));
}

/** Folder → name, and names of what it depends on. */
function readWorkspace(root, { withTests }) {
  return new Map(
    allFolders(root).map((folder) => {
      const { name, dependencies, devDependencies } = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'));
      const needed = { ...dependencies, ...(withTests && devDependencies) };
      return [folder, { name, needs: Object.keys(needed).filter((other) => needed[other].startsWith('workspace:')) }];
    }),
  );
}

/**
 * The folder of a package and those of every package that it imports, directly or not, as package.json files name them;
 * `withTests`: what its tests import, too.
 */
export function listFolders(root, start, { withTests = false } = {}) {
  const workspace = readWorkspace(root, { withTests });
  const folderByName = new Map([...workspace].map(([folder, { name }]) => [name, folder]));
  const found = new Set();
  const add = (folder) => {
    if (folder === undefined || found.has(folder)) return;
    found.add(folder);
    for (const name of workspace.get(folder)?.needs ?? []) add(folderByName.get(name));
  };
  add(start);
  return found;
}
