import { randomBytes } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { readIfThere, StatCache } from '@concierge/files';

/** In a folder that commands of the tenant do not see. */
const incarnationFile = 'settings/incarnation';

/** For a tenant that is being made: in place of the mark that it may have. `settings/` is there, or made. */
export async function markIncarnation(root: string): Promise<void> {
  const path = join(root, incarnationFile);
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await writeFile(path, randomBytes(8).toString('hex'), { mode: 0o600, flush: true });
}

/**
 * What ids of turns are derived from: the tenant's id with a mark that is drawn when the tenant is made. A tenant of
 * the same name that is made after a deletion has another mark, so the same request to it is another turn. Tenants from
 * before there were marks have their id alone.
 */
export class Incarnation {
  readonly #tenantId: string;
  readonly #path: string;
  readonly #cache = new StatCache<string>(1);

  /** `root`: the tenant's folder. */
  constructor(tenantId: string, root: string) {
    this.#tenantId = tenantId;
    this.#path = join(root, incarnationFile);
  }

  /** One system call when nothing has changed. */
  async identity(): Promise<string> {
    const mark = await this.#cache.get(this.#path, async () => (await readIfThere(this.#path)) ?? '');
    return mark === undefined || mark === '' ? this.#tenantId : `${this.#tenantId}/${mark}`;
  }
}
