import { randomBytes } from 'node:crypto';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const DEPLOYMENT_FILE = 'deployment';

/**
 * What running workers keep on disk for as long as they run: `run/<worker>/`, closed to other users. Beside them the
 * deployment's name, so that two deployments on one container engine leave one another's sandboxes alone.
 */
export class WorkerRunDirectories {
  readonly #root: string;
  readonly #workerId: () => string;
  #made = 0;

  constructor(dataDir: string, workerId: () => string) {
    this.#root = join(dataDir, 'run');
    this.#workerId = workerId;
  }

  /** An unused folder for one turn; not made yet. */
  async nextFolder(): Promise<string> {
    const own = join(this.#root, this.#workerId());
    await mkdir(own, { recursive: true, mode: 0o700 });
    this.#made += 1;
    return join(own, String(this.#made));
  }

  /** An id of this data directory: the same for all its workers, and for no others. */
  async deployment(): Promise<string> {
    await mkdir(this.#root, { recursive: true, mode: 0o700 });
    const path = join(this.#root, DEPLOYMENT_FILE);
    // A second writer finds the first one's name.
    await writeFile(path, `d_${randomBytes(8).toString('hex')}`, { flag: 'wx' }).catch(() => undefined);
    return await readFile(path, 'utf8');
  }

  /** Removes the folders of workers that are gone. @returns how many */
  async sweep(isAlive: (workerId: string) => Promise<boolean>): Promise<number> {
    let swept = 0;
    for (const entry of await readdir(this.#root, { withFileTypes: true }).catch(() => [])) {
      if (!entry.isDirectory() || (await isAlive(entry.name))) continue;
      await rm(join(this.#root, entry.name), { recursive: true, force: true });
      swept += 1;
    }
    return swept;
  }

  async removeOwn(): Promise<void> {
    await rm(join(this.#root, this.#workerId()), { recursive: true, force: true });
  }
}
