import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { silentLog as log, temporaryDirectory } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';
import { z } from 'zod';
import { FolderSync, RecordChanges, RecordFolder, type RecordChange } from '../src/index.ts';

const Note = z.strictObject({ version: z.literal(1), revision: z.string(), text: z.string() });
const told = { tenantId: 'acme', store: 'notes', name: 'one' };

interface Machine {
  readonly changes: RecordChanges;
  readonly notes: RecordFolder<typeof Note>;
}

let root: string;
let sent: RecordChange[];
let here: Machine;

/** The same folder as a process sees it. */
function openMachine(): Machine {
  const changes = new RecordChanges({ root, tell: (change) => void sent.push(change) });
  const shared = { changes, revisionOf: ({ revision }: z.output<typeof Note>) => revision };
  const folder = join(root, 'acme', 'notes');
  const notes = new RecordFolder({ tenantId: 'acme', folder, folders: new FolderSync(), schema: Note, names: /^one$/u, shared, log });
  return { changes, notes };
}

function note(revision: string): z.output<typeof Note> {
  return { version: 1, revision, text: `of ${revision}` };
}

async function readRevision({ notes }: Machine): Promise<string | undefined> {
  return (await notes.find('one'))?.revision;
}

setUpEach(async (stack) => {
  root = stack.use(await temporaryDirectory()).path;
  await mkdir(join(root, 'acme'));
  sent = [];
  here = openMachine();
});

describe('records whose changes are told', () => {
  it('tell their revision and nothing else, after they are on disk', async () => {
    const path = join(root, 'acme', 'notes', 'one.json');
    await here.notes.put('one', note('2'));
    expect(await readFile(path, 'utf8')).toContain('of 2');
    await here.notes.remove('one');
    expect(sent).toEqual([
      { ...told, revision: '2', isRemoved: false },
      { ...told, revision: '2', isRemoved: true },
    ]);
  });

  it('are not there any more once they are told to be removed, unless they were written since', async () => {
    await here.notes.put('one', note('2'));
    here.changes.hear({ ...told, revision: '2', isRemoved: true });
    expect([await readRevision(here), here.notes.isOutdated('one')]).toEqual([undefined, true]);
    await openMachine().notes.put('one', note('3'));
    expect([await readRevision(here), here.notes.isOutdated('one')]).toEqual(['3', false]);
  });

  it('are not there either when they are damaged and told to be removed', async () => {
    await here.notes.put('one', note('2'));
    await writeFile(join(root, 'acme', 'notes', 'one.json'), 'no JSON');
    here.changes.hear({ ...told, revision: '2', isRemoved: true });
    expect(await here.notes.read('one')).toBeUndefined();
  });

  it('are waited for when they are told to be replaced, and read as they are when they do not come', async () => {
    const [path, next] = ['one.json', 'next'].map((name) => join(root, 'acme', 'notes', name));
    await here.notes.put('one', note('2'));
    // As another machine puts it, but for the last step: a slow disk syncs for longer than a reader waits.
    await writeFile(next ?? '', JSON.stringify(note('3')));
    here.changes.hear({ ...told, revision: '3', isRemoved: false });
    const waiting = readRevision(here);
    expect(await readFile(path ?? '', 'utf8')).toContain('of 2');
    await rename(next ?? '', path ?? '');
    expect(await waiting).toBe('3');
    here.changes.hear({ ...told, revision: '4', isRemoved: false });
    expect(await readRevision(here)).toBe('3');
  });

  it('that this process has written itself are never out of date, whatever another clock says', async () => {
    here.changes.hear({ ...told, revision: '9', isRemoved: true });
    await here.notes.put('one', note('2'));
    expect([await readRevision(here), here.notes.isOutdated('one')]).toEqual(['2', false]);
  });
});
