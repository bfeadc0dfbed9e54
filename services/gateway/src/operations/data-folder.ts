import { randomUUID } from 'node:crypto';
import { rm, statfs, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Less free space than this counts as full: a message with its files needs more. */
const FREE_MIN_BYTES = 4 * 1024 * 1024;
/** Anyone may ask whether the service is ready, as often as they like; the disk is checked at most this often. */
const ASK_AGAIN_MS = 1000;

/** The folder that holds all data, and whether it can be written to. */
export class DataFolder {
  readonly #path: string;
  readonly #probe = `.ready-${randomUUID()}`;
  #asked: Promise<void> | undefined;
  #askedAtMs = 0;

  constructor(path: string) {
    this.#path = path;
  }

  /**
   * Writes a file and removes it: permissions alone do not show a disk that is full or broken.
   * @throws the disk's error
   */
  async assertWritable(): Promise<void> {
    if (this.#asked === undefined || performance.now() - this.#askedAtMs > ASK_AGAIN_MS) {
      this.#askedAtMs = performance.now();
      this.#asked = this.#write();
    }
    await this.#asked;
  }

  async #write(): Promise<void> {
    const { bavail, bsize } = await statfs(this.#path);
    if (bavail * bsize < FREE_MIN_BYTES) throw new Error('the disk is full');
    const file = join(this.#path, this.#probe);
    try {
      await writeFile(file, 'x'.repeat(4096), { flush: true });
    } finally {
      await rm(file, { force: true });
    }
  }
}
