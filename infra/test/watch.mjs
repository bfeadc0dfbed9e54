// `npm test -- --watch PATH`: again after each change, without git and without a terminal, which Jest's own watch
// needs.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { FileWatch } from '../dev/file-watch.mjs';
import { allFolders, listFolders } from '../dev/workspace.mjs';

const acceptance = /^packages\/acceptance\/(?<kind>contract|e2e|chaos)(?:\/|$)/u;

/** The kind of the tests of a path. */
export function findKind(path = '') {
  if (path.includes('.deploy.test.')) return 'deploy';
  if (path.includes('.stack.test.')) return 'stack';
  if (path.includes('.int.test.') || /^[^/]+\/[^/]+\/test(?:\/|$)/u.test(path)) return 'integration';
  return acceptance.exec(path)?.groups.kind ?? 'unit';
}

/** What the tests of a path are made of: its package with all that this one and its tests import, or everything. */
export function watchedFolders(root, path = '') {
  const own = /^(?:packages|services)\/[^/]+/u.exec(path)?.[0];
  if (own !== undefined && own !== 'packages/acceptance' && existsSync(join(root, own)))
    return [...listFolders(root, own, { withTests: true })];
  return path.startsWith('infra') ? ['infra'] : ['infra', ...allFolders(root)];
}

/** Calls `run` at once, and again after each change; what changes during a run is run after it. Never resolves. */
export async function watchAndRun(root, path, run) {
  let changed = Promise.withResolvers();
  const watch = new FileWatch(root, watchedFolders(root, path), () => changed.resolve());
  try {
    while (true) {
      await run();
      process.stdout.write('Waiting for a change. Ctrl-C ends.\n');
      await changed.promise;
      changed = Promise.withResolvers();
    }
  } finally {
    watch.close();
  }
}
