// What a build is made of, as one hash: a build is left out while nothing of it has changed.
import { createHash } from 'node:crypto';
import { readFile, readdir, stat } from 'node:fs/promises';
import { join, relative } from 'node:path';

/** All files below a folder, sorted by path; of a file the file itself. */
export async function listFiles(path) {
  if ((await stat(path)).isFile()) return [path];
  const entries = await readdir(path, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .toSorted();
}

/** SHA-256 (hex) over the paths and contents of all sources. `root`: where the paths begin. */
export async function hashSources(root, sources) {
  const hash = createHash('sha256');
  for (const path of (await Promise.all(sources.map(listFiles))).flat()) {
    hash
      .update(relative(root, path))
      .update('\0')
      .update(await readFile(path))
      .update('\0');
  }
  return hash.digest('hex');
}
