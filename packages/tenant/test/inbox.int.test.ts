import { link, readdir, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import type { TurnStep } from '@concierge/contract';
import { FolderSync } from '@concierge/files';
import { armFailpoints } from '@concierge/runtime';
import { Inbox } from '../src/inbox/inbox.ts';
import { acceptedTurn, silentLog, temporaryFolder } from './support.ts';

const inboxIn = (folder: string): Inbox => new Inbox({ folder, folders: new FolderSync(), log: silentLog });
const intent = (callId: string): TurnStep => ({ kind: 'intent', callId, name: 'bash' });

describe('the inbox', () => {
  it('accepts a turn once, with several writers', async () => {
    await using folder = await temporaryFolder();
    const inboxes = Array.from({ length: 4 }, () => inboxIn(folder.path));
    const turn = acceptedTurn('turn-1');
    const outcomes = await Promise.all(inboxes.map(async (inbox) => inbox.accept(turn)));
    expect(outcomes.toSorted()).toEqual(['accepted', 'exists', 'exists', 'exists']);
    expect(await inboxes[0]?.read('turn-1')).toEqual(turn);
    expect(await readdir(folder.path)).toEqual(['turn-1.json']);
  });

  it('accepts many with one sync of the folder, and returns which were here', async () => {
    await using folder = await temporaryFolder();
    let syncs = 0;
    class CountedSync extends FolderSync {
      override async sync(path: string): Promise<void> {
        syncs += 1;
        await super.sync(path);
      }
    }
    const inbox = new Inbox({ folder: folder.path, folders: new CountedSync(), log: silentLog });
    const ids = ['turn-1', 'turn-2', 'turn-3', 'turn-2', 'turn-4'];
    await inbox.accept(acceptedTurn('turn-3'));
    syncs = 0;
    expect(await inbox.acceptInOrder(ids.map((id) => acceptedTurn(id)))).toEqual({
      created: [true, true, false, false, true],
      failure: undefined,
    });
    expect(syncs).toBe(1);
    expect((await readdir(folder.path)).toSorted()).toEqual(['turn-1.json', 'turn-2.json', 'turn-3.json', 'turn-4.json']);
  });

  it('has accepted what is on disk, even when the process fails right after', async () => {
    await using folder = await temporaryFolder();
    armFailpoints('inbox.after-file:throw');
    await expect(inboxIn(folder.path).accept(acceptedTurn('turn-1'))).rejects.toThrow('fail point');
    expect(await inboxIn(folder.path).accept(acceptedTurn('turn-1'))).toBe('exists');
  });

  it('keeps journal and cancel mark beside the turn, and removes all of it', async () => {
    await using folder = await temporaryFolder();
    const inbox = inboxIn(folder.path);
    await inbox.accept(acceptedTurn('turn-1'));
    expect(await inbox.readJournal('turn-1')).toEqual([]);
    await inbox.appendJournal('turn-1', [intent('c1')]);
    await writeFile(join(folder.path, 'turn-1.journal.jsonl'), '{"kind":"intent","callId":"torn', { flag: 'a' });
    await inbox.appendJournal('turn-1', [intent('c2'), intent('c3')]);
    expect(await inbox.readJournal('turn-1')).toEqual([intent('c1'), intent('c2'), intent('c3')]);
    expect(await inbox.isCancelled('turn-1')).toBe(false);
    await inbox.markCancelled('turn-1');
    await inbox.markCancelled('turn-1');
    expect(await inbox.isCancelled('turn-1')).toBe(true);
    expect((await inbox.list()).map((item) => item.turnId)).toEqual(['turn-1']);
    await inbox.remove('turn-1');
    await inbox.remove('turn-1');
    expect(await readdir(folder.path)).toEqual([]);
    expect(await inbox.read('turn-1')).toBeUndefined();
  });

  it('lists turns with the time of their acceptance', async () => {
    await using folder = await temporaryFolder();
    const inbox = inboxIn(folder.path);
    const beforeMs = Date.now() - 2000;
    for (const id of ['a', 'b', 'c']) await inbox.accept(acceptedTurn(id));
    const items = await inbox.list();
    expect(items.map((item) => item.turnId).toSorted()).toEqual(['a', 'b', 'c']);
    expect(items.every((item) => item.mtimeMs >= beforeMs)).toBe(true);
    expect((await inbox.turnIds()).toSorted()).toEqual(['a', 'b', 'c']);
    expect(await inboxIn(join(folder.path, 'missing')).list()).toEqual([]);
  });

  it('sets a damaged file aside', async () => {
    await using folder = await temporaryFolder();
    const inbox = inboxIn(folder.path);
    await writeFile(join(folder.path, 'turn-1.json'), '{"version":1');
    expect(await inbox.read('turn-1')).toBeUndefined();
    expect(await inbox.turnIds()).toEqual([]);
    expect(await readdir(folder.path)).toEqual(['turn-1.json.broken']);
  });

  it('sweeps what has no turn any more, when it is old', async () => {
    await using folder = await temporaryFolder();
    const inbox = inboxIn(folder.path);
    await inbox.accept(acceptedTurn('alive'));
    await inbox.appendJournal('alive', [intent('c1')]);
    await inbox.appendJournal('gone', [intent('c1')]);
    await inbox.markCancelled('gone');
    await writeFile(join(folder.path, '.tmp-left'), '');
    await link(join(folder.path, 'alive.json'), join(folder.path, '.tmp-linked'));
    await inbox.sweep();
    expect(await readdir(folder.path)).toHaveLength(6);
    const hourAgo = new Date(Date.now() - 3_600_000);
    for (const name of await readdir(folder.path)) await utimes(join(folder.path, name), hourAgo, hourAgo);
    await inbox.sweep();
    expect((await readdir(folder.path)).toSorted()).toEqual(['alive.journal.jsonl', 'alive.json']);
  });

  it.each(['../x', 'a/b', '', '.', 'a.json', 'a\0'])('accepts and finds no turn called %j', async (turnId) => {
    await using folder = await temporaryFolder();
    await expect(inboxIn(folder.path).accept(acceptedTurn(turnId))).rejects.toThrow('not a turn id');
    expect(await inboxIn(folder.path).read(turnId)).toBeUndefined();
    expect(await inboxIn(folder.path).isCancelled(turnId)).toBe(false);
  });
});
