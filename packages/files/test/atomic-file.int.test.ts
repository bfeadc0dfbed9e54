import { mkdir, readdir, readFile, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { temporaryDirectory } from '@concierge/testing';
import { z } from 'zod';
import { appendLines, createFile, createFiles, replaceFile, sweepTemporaries } from '../src/atomic-file.ts';
import { temporaryName } from '../src/file-steps.ts';
import { FolderSync } from '../src/folder-sync.ts';
import { parseLines } from '../src/record-folder.ts';

const folders = new FolderSync();

describe('replacing a file', () => {
  it('puts the new content in place and leaves nothing else', async () => {
    await using folder = await temporaryDirectory();
    await replaceFile({ folder: folder.path, name: 'a', content: 'one', folders });
    await replaceFile({ folder: folder.path, name: 'a', content: 'two', folders });
    expect(await readFile(join(folder.path, 'a'), 'utf8')).toBe('two');
    expect(await readdir(folder.path)).toEqual(['a']);
    expect((await stat(join(folder.path, 'a'))).mode & 0o777).toBe(0o600);
  });

  it('leaves nothing when it fails', async () => {
    await using folder = await temporaryDirectory();
    await mkdir(join(folder.path, 'a', 'b'), { recursive: true });
    await expect(replaceFile({ folder: folder.path, name: 'a', content: 'one', folders })).rejects.toMatchObject({ code: 'EISDIR' });
    expect(await readdir(folder.path)).toEqual(['a']);
    await expect(replaceFile({ folder: join(folder.path, 'missing'), name: 'a', content: 'one', folders })).rejects.toMatchObject({
      code: 'ENOENT',
    });
  });
});

describe('creating a file', () => {
  it('creates none behind one that it cannot create', async () => {
    await using folder = await temporaryDirectory();
    const names = ['1', '2', 'missing/3', '4'];
    const files = names.map((name) => ({ name, content: name }));
    const { created, failure } = await createFiles({ folder: folder.path, folders: new FolderSync(), files });
    expect([created, failure]).toEqual([[true, true], expect.objectContaining({ code: 'ENOENT' })]);
    expect((await readdir(folder.path)).toSorted()).toEqual(['1', '2']);
  });

  it('lets exactly one of many have the name', async () => {
    await using folder = await temporaryDirectory();
    const contents = Array.from({ length: 50 }, (_, index) => `content ${String(index)}`);
    const created = await Promise.all(contents.map(async (content) => createFile({ folder: folder.path, name: 'a', content, folders })));
    expect(created.filter(Boolean)).toHaveLength(1);
    expect(await readFile(join(folder.path, 'a'), 'utf8')).toBe(contents[created.indexOf(true)]);
    expect(await readdir(folder.path)).toEqual(['a']);
    expect((await stat(join(folder.path, 'a'))).nlink).toBe(1);
  });
});

describe('appending lines', () => {
  it('keeps the next line apart from one that was torn', async () => {
    await using folder = await temporaryDirectory();
    const path = join(folder.path, 'log.jsonl');
    const where = { path: folder.path, folders };
    await appendLines(path, ['{"n":1}', '{"n":2}'], where);
    await writeFile(path, '{"n":3', { flag: 'a' });
    await appendLines(path, ['{"n":4}'], where);
    await appendLines(path, [], where);
    expect(parseLines(z.object({ n: z.number() }), await readFile(path, 'utf8'))).toEqual([{ n: 1 }, { n: 2 }, { n: 4 }]);
  });
});

describe('sweeping', () => {
  it('removes old temporaries and nothing else', async () => {
    await using folder = await temporaryDirectory();
    const [old, young] = [temporaryName(), temporaryName()];
    for (const name of [old, young, 'kept']) await writeFile(join(folder.path, name), '');
    const hourAgo = new Date(Date.now() - 3_600_000);
    await utimes(join(folder.path, old), hourAgo, hourAgo);
    await utimes(join(folder.path, 'kept'), hourAgo, hourAgo);
    expect(await sweepTemporaries(folder.path)).toBe(1);
    expect((await readdir(folder.path)).toSorted()).toEqual([young, 'kept'].toSorted());
    expect(await sweepTemporaries(join(folder.path, 'missing'))).toBe(0);
  });
});

describe('syncing a folder', () => {
  it('answers all callers, with few fsyncs for many', async () => {
    await using folder = await temporaryDirectory();
    await Promise.all(
      Array.from({ length: 100 }, async (_, index) => {
        await writeFile(join(folder.path, String(index)), '');
        await folders.sync(folder.path);
      }),
    );
    expect(await readdir(folder.path)).toHaveLength(100);
  });

  it('reports to each caller its own failure', async () => {
    await using folder = await temporaryDirectory();
    const missing = join(folder.path, 'missing');
    const failures = await Promise.allSettled([folders.sync(missing), folders.sync(missing), folders.sync(missing)]);
    expect(failures.map((failure) => failure.status)).toEqual(['rejected', 'rejected', 'rejected']);
    await mkdir(missing);
    await folders.sync(missing);
  });
});
