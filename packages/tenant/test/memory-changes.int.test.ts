import { execFile } from 'node:child_process';
import { watch } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { SqliteBackend, storeOver, type IndexStore } from '@concierge/index';
import { eventually, silentLog } from '@concierge/testing';
import { MemorySearch, type MemoryAnswer, type Searcher } from '../src/memory-search/memory-search.ts';
import { NoteWatch } from '../src/memory-search/note-watch.ts';
import type { TenantScope } from '../src/tenant-scope.ts';
import { Tenants } from '../src/tenants.ts';
import { listFileCalls } from './file-calls.ts';
import { temporaryFolder, type Folder } from './support.ts';

const owner: Searcher = { access: 'owner' };
const NOTES = 300;
const inShell = promisify(execFile);

let folder: Folder;
let index: IndexStore;
let scope: TenantScope;

/**
 * A process has one instance of inotify, from its first watch to its end; a user's processes have 128 together by
 * default. Where all are taken each search looks at every note, which is right and slow: not what is tested here.
 */
beforeAll(async () => {
  await eventually(async () => {
    watch(import.meta.dirname).close();
    return true;
  });
});
beforeEach(async () => {
  folder = await temporaryFolder();
  index = storeOver(new SqliteBackend({ folder: join(folder.path, 'index'), bootId: 'b', log: silentLog }));
  scope = await new Tenants({ dataDir: folder.path, index, keySecret: 'k'.repeat(40), log: silentLog }).create('acme');
  await mkdir(join(scope.root, 'memory', 'people'), { recursive: true });
  await writeFile(join(scope.root, 'memory', 'lamp.md'), 'The lamp is blue.\n');
  await writeFile(join(scope.root, 'memory', 'people', 'ines.md'), 'Ines likes tulips.\n');
});
afterEach(async () => {
  await index.close();
  await folder[Symbol.asyncDispose]();
});

const asked = async (text: string, search: MemorySearch = scope.memorySearch): Promise<MemoryAnswer> =>
  search.search(owner, { text, limit: 10, kinds: ['note'], signal: new AbortController().signal });
const refs = async (text: string, search?: MemorySearch): Promise<string[]> => (await asked(text, search)).hits.map(({ ref }) => ref);

/** Another program, which changes a file where it lies. */
async function append(path: string, text: string): Promise<void> {
  await inShell('sh', ['-c', 'printf "%s\\n" "$2" >> "$1"', 'sh', join(scope.root, path), text]);
}

describe('a search', () => {
  it('looks at no note that is as it was', async () => {
    for (let number = 0; number < NOTES; number += 1)
      await writeFile(join(scope.root, 'memory', `n${String(number)}.md`), `Note ${String(number)} about a lamp.\n`);
    // One search reads for a second at most; on a busy machine that is not enough for all of them.
    await eventually(async () => (await asked('lamp')).unread.notes === 0);
    const idle = await listFileCalls(async () => asked('lamp'));
    expect(idle.length).toBeLessThan(NOTES / 10);
    await append('memory/n7.md', 'It is yellow.');
    const one = await listFileCalls(async () => {
      expect(await refs('yellow')).toEqual(['memory/n7.md']);
    });
    expect(one.length).toBeGreaterThan(idle.length);
    expect(one.length).toBeLessThan(NOTES / 10);
  });

  it('sees what other programs do: a note written in place, a new one, one that is gone, one that was replaced', async () => {
    expect(await refs('lamp')).toEqual(['memory/lamp.md']);
    for (const colour of ['crimson', 'purple', 'beige']) {
      await append('memory/lamp.md', `Now it is ${colour}.`);
      expect(await refs(colour)).toEqual(['memory/lamp.md']);
    }
    await append('memory/people/tom.md', 'Tom collects stamps.');
    expect(await refs('stamps')).toEqual(['memory/people/tom.md']);
    await append('MEMORY.md', 'The canoe is rented.');
    expect(await refs('canoe')).toEqual(['MEMORY.md']);
    await writeFile(join(scope.root, 'new.md'), 'Tom collects coins.\n');
    await rename(join(scope.root, 'new.md'), join(scope.root, 'memory', 'people', 'tom.md'));
    expect(await refs('stamps')).toEqual([]);
    expect(await refs('coins')).toEqual(['memory/people/tom.md']);
    await rm(join(scope.root, 'memory', 'lamp.md'));
    expect(await refs('lamp')).toEqual([]);
  });

  it('sees folders that are new, renamed, removed, or put in the place of others', async () => {
    expect(await refs('tulips')).toEqual(['memory/people/ines.md']);
    await mkdir(join(scope.root, 'memory', 'places', 'far'), { recursive: true });
    await writeFile(join(scope.root, 'memory', 'places', 'far', 'oslo.md'), 'A ferry goes to Oslo.\n');
    expect(await refs('ferry')).toEqual(['memory/places/far/oslo.md']);
    await append('memory/places/far/oslo.md', 'It has a sauna.');
    expect(await refs('sauna')).toEqual(['memory/places/far/oslo.md']);
    await rename(join(scope.root, 'memory', 'people'), join(scope.root, 'memory', 'friends'));
    expect(await refs('tulips')).toEqual(['memory/friends/ines.md']);
    await append('memory/friends/ines.md', 'She sails.');
    expect(await refs('sails')).toEqual(['memory/friends/ines.md']);
    await rm(join(scope.root, 'memory', 'places'), { recursive: true });
    expect(await refs('ferry')).toEqual([]);
    await rename(join(scope.root, 'memory'), join(scope.root, 'old'));
    expect(await refs('tulips lamp')).toEqual([]);
    await mkdir(join(scope.root, 'memory'));
    await writeFile(join(scope.root, 'memory', 'cat.md'), 'The cat is called Pixel.\n');
    expect(await refs('pixel')).toEqual(['memory/cat.md']);
  });

  it('sees a contact’s first note, and the next one', async () => {
    const contact: Searcher = { access: 'contact', agent: 'cs', sender: 'anna', sessionId: '0'.repeat(32) };
    const found = async (text: string): Promise<number> =>
      (await scope.memorySearch.search(contact, { text, limit: 10, signal: new AbortController().signal })).hits.length;
    expect(await found('tulips')).toBe(0);
    await scope.memory.forContact('anna').write({ text: 'Anna likes tulips.' });
    expect(await found('tulips')).toBe(1);
    await scope.memory.forContact('anna').write({ title: 'Shoes', text: 'Size 40.' });
    expect(await found('size')).toBe(1);
  });
});

describe('a watch over notes', () => {
  it('stops listening to a command that writes without end, and reports that anything may have changed', async () => {
    const watch = new NoteWatch({ folder: scope.root });
    expect(await watch.take()).toBe('all');
    await watch.follow(['memory', 'memory/people']);
    expect(await watch.take()).toEqual(new Set());
    await append('memory/lamp.md', 'It is new.');
    expect(await watch.take()).toEqual(new Set(['memory/lamp.md']));
    const loop = 'i=0; while [ $i -lt 4000 ]; do echo x >> "$1"; echo x >> "$2"; i=$((i+1)); done';
    const [one, other] = ['lamp.md', 'people/ines.md'].map((name) => join(scope.root, 'memory', name));
    await inShell('sh', ['-c', loop, 'sh', one ?? '', other ?? '']);
    expect(await watch.take()).toBe('all');
    watch.close();
  });
});

describe('where the kernel does not report changes', () => {
  let nowMs: number;
  let search: MemorySearch;
  beforeEach(() => {
    nowMs = 0;
    const { tenantId, root, memory, sessions } = scope;
    const { passages } = scope.index;
    const far = { noteEvents: 'never', now: () => nowMs } as const;
    search = new MemorySearch({ tenantId, root, memory, sessions, passages, embedder: undefined, log: silentLog, ...far });
  });

  it('a search sees an edit within five seconds, and looks at notes no more often than that', async () => {
    expect(await refs('lamp', search)).toEqual(['memory/lamp.md']);
    for (const colour of ['crimson', 'purple']) {
      await append('memory/lamp.md', `Now it is ${colour}.`);
      nowMs += 5000;
      expect(await refs(colour, search)).toEqual(['memory/lamp.md']);
      const calls = await listFileCalls(async () => asked(colour, search));
      expect(calls.filter((name) => name.includes('open'))).toEqual([]);
    }
  });

  it('a new note and one that is gone are seen at once by their folder', async () => {
    expect(await refs('lamp', search)).toEqual(['memory/lamp.md']);
    await append('memory/people/tom.md', 'Tom collects stamps.');
    expect(await refs('stamps', search)).toEqual(['memory/people/tom.md']);
    await rm(join(scope.root, 'memory', 'lamp.md'));
    expect(await refs('lamp', search)).toEqual([]);
  });

  it('a search reads for a while only, the latest notes first, and reports what is left', async () => {
    for (let number = 0; number < NOTES; number += 1)
      await writeFile(join(scope.root, 'memory', `n${String(number)}.md`), `Note ${String(number)} about a canoe.\n`);
    const { tenantId, root, memory, sessions } = scope;
    const { passages } = scope.index;
    const slow = { noteEvents: 'never', now: () => (nowMs += 300) } as const;
    const slowly = new MemorySearch({ tenantId, root, memory, sessions, passages, embedder: undefined, log: silentLog, ...slow });
    const left: number[] = [];
    do left.push((await asked('canoe', slowly)).unread.notes);
    while (left.at(-1) !== 0);
    expect(left.length).toBeGreaterThan(1);
    expect(left).toEqual(left.toSorted((one, other) => other - one));
    expect((await asked('canoe', slowly)).total).toBeGreaterThan(90);
  });
});
