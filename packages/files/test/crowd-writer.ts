import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { argv, stdout } from 'node:process';
import type { Worker } from 'node:worker_threads';
import { FileWriter } from '../src/file-writer.ts';
import { FolderSync } from '../src/folder-sync.ts';
import { isSystemError } from '../src/system-error.ts';

/**
 * A process that writes crowds of files and ends: the first by itself, those after it by the thread that this has
 * started, until that is ended.
 */
const [, , root = ''] = argv;
const CROWD = 200;
const FOLDERS = 4;
const writer = new FileWriter();
const folders = new FolderSync();
const threads: Worker[] = [];
const ready = Promise.withResolvers<unknown>();
process.on('worker', (thread) => {
  threads.push(thread);
  ready.resolve(once(thread, 'message'));
});

const buildFolderPath = (index: number): string => join(root, String(index % FOLDERS));
const file = (index: number, content: string) => ({ folder: buildFolderPath(index), name: `${String(index)}.txt`, content, folders });
const createAll = async (indexes: readonly number[], content: string): Promise<number> => {
  const created = await Promise.all(indexes.map(async (index) => writer.create(file(index, `${content} ${String(index)}`))));
  return created.filter(Boolean).length;
};

for (let index = 0; index < FOLDERS; index += 1) await mkdir(buildFolderPath(index));
const first = await createAll(
  Array.from({ length: CROWD }, (_, index) => index),
  'first',
);
// A thread that has nothing to do keeps no process alive.
const alive = setInterval(() => undefined, 1000);
await ready.promise;
clearInterval(alive);
const second = await createAll(
  Array.from({ length: CROWD }, (_, index) => index * 2),
  'second',
);
const failures = await Promise.all(
  Array.from({ length: CROWD }, async (_, index) =>
    writer.create({ ...file(index, 'lost'), folder: join(root, 'missing') }).then(
      () => 'written',
      (error: unknown) =>
        isSystemError(error, 'ENOENT') ? `${error.code} ${error.syscall} ${String(error.path?.startsWith(root))}` : String(error),
    ),
  ),
);
await Promise.all(Array.from({ length: CROWD }, async (_, index) => writer.replace(file(index, `third ${String(index)}`))));
const dying = Array.from({ length: CROWD }, async (_, index) =>
  writer.create({ ...file(index, 'cut off'), name: `cut-${String(index)}.txt` }).then(
    () => 'written',
    (error: unknown) => (isSystemError(error, 'EIO') ? error.code : String(error)),
  ),
);
await threads[0]?.terminate();
const cut = await Promise.all(dying);
const after = await createAll(
  Array.from({ length: CROWD }, (_, index) => 1000 + index),
  'after',
);
stdout.write(
  JSON.stringify({
    threads: threads.length,
    first,
    second,
    failures: [...new Set(failures)],
    cut: cut.filter((outcome) => outcome !== 'written'),
    after,
  }),
);
