import { argv, stdout } from 'node:process';
import { FolderSync } from '../src/folder-sync.ts';
import { WriteAheadLog } from '../src/write-ahead-log.ts';

/** Appends without an end, and prints each record when it was acknowledged. */
const [, , folder = ''] = argv;
const wal = await WriteAheadLog.create({ folder, folders: new FolderSync() });

async function appendForever(name: string): Promise<void> {
  for (let index = 0; ; index += 1) {
    const text = `${name}-${String(index)}`;
    await wal.append(text);
    stdout.write(`${text}\n`);
  }
}

await Promise.all(['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].map(async (name) => appendForever(name)));
