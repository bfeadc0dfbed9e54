import { mkdir, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createFile } from './atomic-file.ts';
import type { FolderSync } from './folder-sync.ts';
import { namesIn } from './names-in.ts';
import { ignoreMissing } from './system-error.ts';

/** Older ones go, so that the folder stays small; the newest is what counts. */
const kept = 3;

/** Numbers that only rise, on disk: a file for each, created exclusively. What is derived from them rises with no clock. */
export class Generations {
  readonly #folder: string;
  readonly #folders: FolderSync;

  constructor({ folder, folders }: { readonly folder: string; readonly folders: FolderSync }) {
    this.#folder = folder;
    this.#folders = folders;
  }

  /** On disk when it returns. */
  async next(): Promise<number> {
    if ((await mkdir(this.#folder, { recursive: true, mode: 0o700 })) !== undefined) await this.#folders.sync(dirname(this.#folder));
    for (;;) {
      const drawn = await this.#drawn();
      const number = (drawn.at(-1) ?? 0) + 1;
      if (!(await createFile({ folder: this.#folder, name: String(number), content: '', folders: this.#folders }))) continue;
      for (const old of drawn.slice(0, -kept)) await ignoreMissing(unlink(join(this.#folder, String(old))));
      return number;
    }
  }

  /** In rising order. */
  async #drawn(): Promise<number[]> {
    const names = (await namesIn(this.#folder)).filter((name) => /^[1-9]\d*$/u.test(name));
    return names.map(Number).toSorted((left, right) => left - right);
  }
}
