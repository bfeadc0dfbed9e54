import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { eventually, temporaryDirectory } from '@concierge/testing';
import { StatCache } from '../src/stat-cache.ts';

/** Less than the second after which a file counts as unchanged: disks keep times in steps. */
const SOON_MS = 900;

describe('what was made of a file', () => {
  it('is kept once the file has not changed for a second, and made again when it changes', async () => {
    await using folder = await temporaryDirectory();
    const path = join(folder.path, 'a');
    const cache = new StatCache<number>(10);
    let reads = 0;
    const get = async (): Promise<number | undefined> =>
      cache.get(path, async () => {
        reads += 1;
        return Promise.resolve(reads);
      });
    // Times on disk may be too coarse to distinguish two changes in a row, so nothing is trusted yet. Once more where
    // the machine stood still for so long that it is.
    let pair: readonly unknown[];
    let beganMs: number;
    do {
      reads = 0;
      beganMs = Date.now();
      await writeFile(path, 'a');
      pair = [await get(), await get()];
    } while (Date.now() - beganMs > SOON_MS);
    expect(pair).toEqual([1, 2]);
    await eventually(async () => (await get()) === (await get()));
    const kept = reads;
    expect([await get(), await get()]).toEqual([kept, kept]);
    await writeFile(path, 'b');
    expect(await get()).toBe(kept + 1);
    await rm(path);
    expect(await get()).toBeUndefined();
  });
});
