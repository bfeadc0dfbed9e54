import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile, readlink, stat, truncate, writeFile } from 'node:fs/promises';
import { constants } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { eventually, temporaryDirectory } from '@concierge/testing';
import { FolderSync } from '../src/folder-sync.ts';
import { readLog, recordMaxBytes, WriteAheadLog } from '../src/write-ahead-log.ts';

const writerPath = fileURLToPath(new URL('./log-writer.ts', import.meta.url));
const createIn = async (folder: string): Promise<WriteAheadLog> => WriteAheadLog.create({ folder, folders: new FolderSync() });

describe('a write-ahead log', () => {
  it('contains what was appended, in order, while it is written and afterwards', async () => {
    await using above = await temporaryDirectory();
    const folder = join(above.path, 'logs', 'one');
    const wal = await createIn(folder);
    const texts = Array.from({ length: 500 }, (_, index) => `${String(index)} ${'ü'.repeat(index)}`);
    const records = await Promise.all(texts.slice(0, 400).map(async (text) => wal.append(text)));
    expect(await readLog(folder)).toEqual(texts.slice(0, 400));
    for (const text of texts.slice(400)) await wal.append(text);
    for (const record of records) record.settle();
    expect(await readLog(folder)).toEqual(texts);
    await wal.remove();
    expect(await readdir(join(above.path, 'logs'))).toEqual([]);
    expect(await readLog(folder)).toEqual([]);
    await expect(wal.append('late')).rejects.toThrow('closed');
  });

  it('begins a new segment when one is full, and removes those whose records are all settled', async () => {
    await using above = await temporaryDirectory();
    const folder = join(above.path, 'one');
    const wal = await createIn(folder);
    const text = 'x'.repeat(200_000);
    const first = await wal.append(`first ${text}`);
    const others = [];
    for (let index = 0; index < 60; index += 1) others.push(await wal.append(`${String(index)} ${text}`));
    for (const record of others) record.settle();
    await eventually(async () => (await readdir(folder)).length <= 3);
    expect((await readLog(folder))[0]?.slice(0, 5)).toBe('first');
    first.settle();
    first.settle();
    await eventually(async () => !(await readdir(folder)).includes('00000001.wal'));
    await wal.remove();
  });

  it('refuses a record that is too long, and takes the next', async () => {
    await using above = await temporaryDirectory();
    const folder = join(above.path, 'one');
    const wal = await createIn(folder);
    await expect(wal.append('x'.repeat(recordMaxBytes + 1))).rejects.toThrow(RangeError);
    await wal.append('short');
    expect(await readLog(folder)).toEqual(['short']);
    await wal.remove();
  });

  it('ends where no whole record stands, however it was torn', async () => {
    await using above = await temporaryDirectory();
    const folder = join(above.path, 'one');
    const wal = await createIn(folder);
    const texts = ['first', 'second', 'third'];
    for (const text of texts) await wal.append(text);
    const path = join(folder, '00000001.wal');
    const whole = await readFile(path);
    const end = whole.indexOf('third') + 'third'.length;
    // A cut at each byte of the last record: a machine that lost its power while it was written.
    for (let at = whole.indexOf('second') + 'second'.length; at < end; at += 1) {
      await writeFile(path, Buffer.concat([whole.subarray(0, at), Buffer.alloc(whole.length - at)]));
      expect(await readLog(folder)).toEqual(texts.slice(0, 2));
      await truncate(path, at);
      expect(await readLog(folder)).toEqual(texts.slice(0, 2));
    }
    const flipped = Buffer.from(whole);
    flipped[whole.indexOf('second')] = 0x53;
    await writeFile(path, flipped);
    expect(await readLog(folder)).toEqual(['first']);
    await writeFile(path, 'another format');
    expect(await readLog(folder)).toEqual([]);
    await wal.remove();
  });

  it('has on disk what it has acknowledged: each write is synced, and moves no end of a file', async () => {
    await using above = await temporaryDirectory();
    const folder = join(above.path, 'one');
    const wal = await createIn(folder);
    const path = join(folder, '00000001.wal');
    const { size, blocks } = await stat(path);
    const descriptors = await readdir('/proc/self/fd');
    const links = await Promise.all(descriptors.map(async (number) => readlink(`/proc/self/fd/${number}`).catch(() => '')));
    const info = await readFile(`/proc/self/fdinfo/${descriptors[links.indexOf(path)] ?? ''}`, 'utf8');
    const flags = Number.parseInt(/flags:\s+(\d+)/u.exec(info)?.[1] ?? '0', 8);
    expect(flags & constants.O_DSYNC).toBe(constants.O_DSYNC);
    for (let index = 0; index < 100; index += 1) await wal.append(`record ${String(index)}`);
    expect(await stat(path)).toMatchObject({ size, blocks });
    await wal.remove();
  });

  it('loses nothing that was acknowledged when its process is killed', async () => {
    await using above = await temporaryDirectory();
    const folder = join(above.path, 'one');
    const writer = spawn(process.execPath, ['--conditions=@concierge/source', '--no-warnings', writerPath, folder]);
    let acknowledged = '';
    writer.stdout.setEncoding('utf8').on('data', (text: string) => {
      acknowledged += text;
      if (acknowledged.length > 20_000) writer.kill('SIGKILL');
    });
    await once(writer, 'close');
    const found = new Set(await readLog(folder));
    const lost = acknowledged
      .slice(0, acknowledged.lastIndexOf('\n'))
      .split('\n')
      .filter((text) => !found.has(text));
    expect([lost, found.size > 1000]).toEqual([[], true]);
  });
});
