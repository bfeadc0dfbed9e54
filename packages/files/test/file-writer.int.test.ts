import { execFile } from 'node:child_process';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { temporaryDirectory } from '@concierge/testing';
import { z } from 'zod';
import { temporaryPrefix } from '../src/atomic-file.ts';
import { FileWriter } from '../src/file-writer.ts';
import { FolderSync } from '../src/folder-sync.ts';

const run = promisify(execFile);
const Crowds = z.object({
  threads: z.number(),
  first: z.number(),
  second: z.number(),
  failures: z.array(z.string()),
  cut: z.array(z.string()),
  after: z.number(),
});
const crowdPath = fileURLToPath(new URL('./crowd-writer.ts', import.meta.url));

describe('writing files', () => {
  it('gives crowds to one thread, with the outcomes and errors that a lone file has, and holds no process back', async () => {
    await using folder = await temporaryDirectory();
    const timeoutMs = 25_000; // Shorter than the thread stays when nothing is to be done.
    const { stdout } = await run(process.execPath, ['--conditions=@concierge/source', '--no-warnings', crowdPath, folder.path], {
      timeout: timeoutMs,
    });
    const { cut, ...outcomes } = Crowds.parse(JSON.parse(stdout));
    expect(outcomes).toEqual({ threads: 1, first: 200, second: 100, failures: ['ENOENT open true'], after: 200 });
    // The thread was ended in the middle: a caller that waited for it learns that the outcome is unknown.
    expect(new Set(cut)).toEqual(new Set(['EIO']));
    const written = (await Promise.all(['0', '1', '2', '3'].map(async (name) => readdir(join(folder.path, name))))).flat();
    const names = written.filter((name) => !name.startsWith('cut-') && !name.startsWith(temporaryPrefix));
    // 200 of the first crowd, of the second those from 200 to 398, and those after the thread's end.
    expect(names.map((name) => Number.parseInt(name, 10)).toSorted((one, other) => one - other)).toEqual([
      ...Array.from({ length: 200 }, (_, index) => index),
      ...Array.from({ length: 100 }, (_, index) => 200 + index * 2),
      ...Array.from({ length: 200 }, (_, index) => 1000 + index),
    ]);
    expect(await readFile(join(folder.path, '3', '7.txt'), 'utf8')).toBe('third 7');
    expect(await readFile(join(folder.path, '0', '300.txt'), 'utf8')).toBe('second 300');
    expect((await stat(join(folder.path, '0', '300.txt'))).mode & 0o777).toBe(0o600);
  });

  it('creates none behind one that it cannot create, in a thread as without one', async () => {
    await using folder = await temporaryDirectory();
    const writer = new FileWriter();
    const place = { folder: folder.path, folders: new FolderSync() };
    for (const [round, prefix] of ['a', 'b', 'c'].entries()) {
      const names = [`${prefix}1`, `${prefix}2`, 'missing/3', `${prefix}4`];
      const { created, failure } = await writer.createInOrder({ ...place, files: names.map((name) => ({ name, content: name })) });
      expect([created, failure]).toEqual([[true, true], expect.objectContaining({ code: 'ENOENT' })]);
      expect((await readdir(folder.path)).filter((name) => name.startsWith(prefix)).toSorted()).toEqual([`${prefix}1`, `${prefix}2`]);
      // A crowd, which brings the thread to life.
      const files = Array.from({ length: 30 }, (_, index) => ({ name: `many-${String(round)}-${String(index)}`, content: 'x' }));
      expect((await writer.createInOrder({ ...place, files })).created).toEqual(files.map(() => true));
    }
    expect((await readdir(folder.path)).filter((name) => name.startsWith(temporaryPrefix))).toEqual([]);
  });

  it('lets exactly one of a crowd have a name', async () => {
    await using folder = await temporaryDirectory();
    const writer = new FileWriter();
    for (const name of ['a', 'b', 'c']) {
      const contents = Array.from({ length: 60 }, (_, index) => `content ${String(index)}`);
      const created = await Promise.all(
        contents.map(async (content) => writer.create({ folder: folder.path, name, content, folders: new FolderSync() })),
      );
      expect(created.filter(Boolean)).toHaveLength(1);
      expect(await readFile(join(folder.path, name), 'utf8')).toBe(contents[created.indexOf(true)]);
    }
    expect((await readdir(folder.path)).toSorted()).toEqual(['a', 'b', 'c']);
  });
});
