import { mkdir, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from '@jest/globals';
import type { RemovedSession, Session } from '@concierge/contract';
import { FolderSync } from '@concierge/files';
import { armFailpoints } from '@concierge/runtime';
import { RevisionConflict } from '../src/sessions/publications.ts';
import { SessionCache, SessionStore } from '../src/sessions/session-store.ts';
import { newSession, newSessionId, silentLog, temporaryFolder, turnRecord, until, userMessage } from './support.ts';

/** Each is like another process: it shares nothing but the files. */
const storeIn = (folder: string): SessionStore =>
  new SessionStore({ tenantId: 'acme', folder, folders: new FolderSync(), cache: new SessionCache(), log: silentLog });

const buildRevisionsPath = (folder: string, id: string): string => join(folder, '.revisions', id);
const revisionNames = async (folder: string, id: string): Promise<string[]> =>
  (await readdir(buildRevisionsPath(folder, id))).filter((name) => !name.startsWith('.')).toSorted();
const readView = async (folder: string, id: string): Promise<unknown> => JSON.parse(await readFile(join(folder, `${id}.json`), 'utf8'));

async function publishUpTo(store: SessionStore, id: string, revision: number): Promise<Session> {
  let session = newSession(id);
  await store.publish(session);
  for (let next = 2; next <= revision; next += 1) {
    session = newSession(id, { revision: next, title: `title ${String(next)}` });
    await store.publish(session);
  }
  return session;
}

async function listRemoved(store: SessionStore): Promise<RemovedSession[]> {
  const removed: RemovedSession[] = [];
  for await (const one of store.removed()) removed.push(one);
  return removed;
}

describe('publishing a session', () => {
  it('makes it what every process loads, and shows it under its own name', async () => {
    await using folder = await temporaryFolder();
    const id = newSessionId();
    const session = newSession(id, { messages: [userMessage('1')], turns: [turnRecord('t-1')] });
    const store = storeIn(folder.path);
    expect(await store.load(id)).toBeUndefined();
    await store.publish(session);
    expect(await store.load(id)).toEqual(session);
    expect(await storeIn(folder.path).load(id)).toEqual(session);
    expect(await readView(folder.path, id)).toEqual(session);
    expect((await readdir(folder.path)).toSorted()).toEqual(['.revisions', `${id}.json`]);
  });

  it('reports what began a session whose file is of an earlier version: the first turn, else the channel', async () => {
    await using folder = await temporaryFolder();
    const began = async (changes: Partial<Session>): Promise<Session['origin']> => {
      const { origin: _origin, ...earlier } = newSession(newSessionId(), changes);
      await storeIn(folder.path).publish(earlier);
      return (await storeIn(folder.path).load(earlier.id))?.origin;
    };
    const turns = [{ ...turnRecord('t-1'), origin: 'heartbeat' as const }, turnRecord('t-2')];
    expect(await began({ turns })).toBe('heartbeat');
    expect(await began({ turns: [{ ...turnRecord('t-1'), origin: 'webhook' }] })).toBe('channel');
    expect(await began({ turns: [{ ...turnRecord('t-1'), origin: 'person' }], channel: 'channel_a' })).toBe('channel');
    expect(await began({})).toBe('user');
  });

  it('keeps the last three revisions', async () => {
    await using folder = await temporaryFolder();
    const id = newSessionId();
    const store = storeIn(folder.path);
    const last = await publishUpTo(store, id, 5);
    expect(await revisionNames(folder.path, id)).toEqual(['0000000003.json', '0000000004.json', '0000000005.json']);
    expect(await storeIn(folder.path).load(id)).toEqual(last);
    const [view, newest] = await Promise.all([
      stat(join(folder.path, `${id}.json`)),
      stat(join(buildRevisionsPath(folder.path, id), '0000000005.json')),
    ]);
    expect(view.ino).toBe(newest.ino);
  });

  it.each([1, 2, 3, 4, 6, 40])('is refused for revision %i on top of 4', async (revision) => {
    await using folder = await temporaryFolder();
    const id = newSessionId();
    const store = storeIn(folder.path);
    const last = await publishUpTo(store, id, 4);
    for (const writer of [store, storeIn(folder.path)]) {
      await expect(writer.publish(newSession(id, { revision, title: 'stale' }))).rejects.toThrow(RevisionConflict);
      expect(await writer.load(id)).toEqual(last);
    }
    expect(await readView(folder.path, id)).toEqual(last);
    expect(await revisionNames(folder.path, id)).toEqual(['0000000002.json', '0000000003.json', '0000000004.json']);
  });

  it('is refused when there is no session to go on with', async () => {
    await using folder = await temporaryFolder();
    const store = storeIn(folder.path);
    const id = newSessionId();
    await expect(store.publish(newSession(id, { revision: 3 }))).rejects.toThrow(RevisionConflict);
    expect(await store.load(id)).toBeUndefined();
    await expect(store.publish(newSession('../escape'))).rejects.toThrow('not a session id');
  });

  it('succeeds for exactly one of many at the same revision', async () => {
    await using folder = await temporaryFolder();
    const id = newSessionId();
    const stores = Array.from({ length: 8 }, () => storeIn(folder.path));
    for (let revision = 1; revision <= 10; revision += 1) {
      const outcomes = await Promise.allSettled(
        stores.map(async (store, index) => store.publish(newSession(id, { revision, title: `by ${String(index)}` }))),
      );
      const winners = outcomes.flatMap((outcome, index) => (outcome.status === 'fulfilled' ? [index] : []));
      expect(winners).toHaveLength(1);
      for (const store of stores) expect((await store.load(id))?.title).toBe(`by ${String(winners[0])}`);
    }
    expect((await readdir(buildRevisionsPath(folder.path, id))).filter((name) => name.startsWith('.tmp-'))).toEqual([]);
  });

  it('gives each caller separate lists', async () => {
    await using folder = await temporaryFolder();
    const id = newSessionId();
    const store = storeIn(folder.path);
    const session = newSession(id, { messages: [userMessage('1')] });
    await store.publish(session);
    session.messages.push(userMessage('2'));
    const loaded = await store.load(id);
    loaded?.messages.push(userMessage('3'));
    expect((await store.load(id))?.messages.map((message) => message.id)).toEqual(['1']);
  });
});

describe('a publication that is cut off', () => {
  afterEach(() => {
    armFailpoints('none:throw');
  });

  it('before its link has not happened', async () => {
    await using folder = await temporaryFolder();
    const id = newSessionId();
    await publishUpTo(storeIn(folder.path), id, 2);
    armFailpoints('session.after-temp:throw');
    await expect(storeIn(folder.path).publish(newSession(id, { revision: 3 }))).rejects.toThrow('fail point');
    const other = storeIn(folder.path);
    expect((await other.load(id))?.revision).toBe(2);
    await other.publish(newSession(id, { revision: 3, title: 'third' }));
    expect((await storeIn(folder.path).load(id))?.title).toBe('third');
  });

  it.each(['session.after-link', 'session.after-publish'])('at %s has happened, and the next load puts the view right', async (point) => {
    await using folder = await temporaryFolder();
    const id = newSessionId();
    const store = storeIn(folder.path);
    await publishUpTo(store, id, 2);
    armFailpoints(`${point}:throw`);
    await expect(store.publish(newSession(id, { revision: 3, title: 'third' }))).rejects.toThrow('fail point');
    await expect(store.publish(newSession(id, { revision: 3, title: 'again' }))).rejects.toThrow(RevisionConflict);
    for (const reader of [store, storeIn(folder.path)]) expect((await reader.load(id))?.title).toBe('third');
    expect(await readView(folder.path, id)).toMatchObject({ revision: 3, title: 'third' });
    expect((await readdir(folder.path)).filter((name) => name.startsWith('.tmp-'))).toEqual([]);
  });

  it('leaves temporaries that the next publications clear away once they are old', async () => {
    await using folder = await temporaryFolder();
    const id = newSessionId();
    const store = storeIn(folder.path);
    await publishUpTo(store, id, 2);
    const left = join(buildRevisionsPath(folder.path, id), '.tmp-dead-1');
    await writeFile(left, '{');
    await store.publish(newSession(id, { revision: 3 }));
    expect(await stat(left)).toBeDefined();
    const hourAgo = new Date(Date.now() - 3_600_000);
    await utimes(left, hourAgo, hourAgo);
    await store.publish(newSession(id, { revision: 4 }));
    await store.publish(newSession(id, { revision: 5 }));
    // No publication waits for that.
    await until(async () => !(await readdir(buildRevisionsPath(folder.path, id))).includes('.tmp-dead-1'));
    await expect(stat(left)).rejects.toMatchObject({ code: 'ENOENT' });
  });
});

describe('loading a session', () => {
  it('sees what another process published since', async () => {
    await using folder = await temporaryFolder();
    const id = newSessionId();
    const [one, other] = [storeIn(folder.path), storeIn(folder.path)];
    await publishUpTo(one, id, 1);
    await other.load(id);
    await other.publish(newSession(id, { revision: 2, title: 'second' }));
    expect((await one.load(id))?.title).toBe('second');
  });

  it('does not mistake a new session for an old one with the same id and revision', async () => {
    await using folder = await temporaryFolder();
    const id = newSessionId();
    const [one, other] = [storeIn(folder.path), storeIn(folder.path)];
    await one.publish(newSession(id, { title: 'old' }));
    await other.remove(id);
    await other.publish(newSession(id, { title: 'new', createdAt: '2026-11-21T00:00:00.000Z' }));
    expect((await one.load(id))?.title).toBe('new');
  });

  it('reads nothing when this process has published it', async () => {
    await using folder = await temporaryFolder();
    const id = newSessionId();
    const store = storeIn(folder.path);
    await store.publish(newSession(id, { title: 'kept in memory' }));
    await writeFile(join(buildRevisionsPath(folder.path, id), '0000000001.json'), 'changed behind our back');
    expect((await store.load(id))?.title).toBe('kept in memory');
  });

  it('sets a damaged file aside and goes on with the revision before it', async () => {
    await using folder = await temporaryFolder();
    const id = newSessionId();
    await publishUpTo(storeIn(folder.path), id, 3);
    const path = join(buildRevisionsPath(folder.path, id), '0000000003.json');
    await rm(path);
    await writeFile(path, '{"version":1,');
    const store = storeIn(folder.path);
    expect((await store.load(id))?.revision).toBe(2);
    expect(await readView(folder.path, id)).toMatchObject({ revision: 2 });
    await store.publish(newSession(id, { revision: 3, title: 'third again' }));
    expect((await storeIn(folder.path).load(id))?.title).toBe('third again');
    expect(await readdir(buildRevisionsPath(folder.path, id))).toContain('0000000003.json.broken');
  });

  it('takes over a session file that came without revisions, as from a backup', async () => {
    await using folder = await temporaryFolder();
    const id = newSessionId();
    await writeFile(join(folder.path, `${id}.json`), JSON.stringify(newSession(id, { revision: 7, title: 'restored' })));
    const store = storeIn(folder.path);
    const ids: string[] = [];
    for await (const one of store.ids()) ids.push(one);
    expect(ids).toEqual([id]);
    expect((await store.load(id))?.title).toBe('restored');
    await store.publish(newSession(id, { revision: 8 }));
    expect((await storeIn(folder.path).load(id))?.revision).toBe(8);
  });

  it.each(['', '..', '../acme', 'x'.repeat(32), 'A'.repeat(32)])('finds nothing under %j', async (id) => {
    await using folder = await temporaryFolder();
    expect(await storeIn(folder.path).load(id)).toBeUndefined();
    expect(await storeIn(folder.path).view(id)).toBeUndefined();
    expect(await storeIn(folder.path).remove(id)).toBeUndefined();
  });
});

describe('the history of a session', () => {
  it('comes before the rest of the conversation, without what only the model was sent', async () => {
    await using folder = await temporaryFolder();
    const id = newSessionId();
    const store = storeIn(folder.path);
    const lines = ['1', '2'].map((number) => ({ kind: 'message' as const, message: userMessage(number) }));
    await store.appendHistory(id, [...lines, { kind: 'turn', turn: turnRecord('t-1') }]);
    await writeFile(join(folder.path, `${id}.history.jsonl`), '{"kind":"message","mess', { flag: 'a' });
    await store.appendHistory(id, [...lines, { kind: 'turn', turn: turnRecord('t-2') }]);
    await store.publish(
      newSession(id, { messages: [userMessage('2'), userMessage('3')], turns: [turnRecord('t-2'), turnRecord('t-3')], messageCount: 3 }),
    );
    const view = await store.view(id);
    expect(view?.messages.map((message) => message.id)).toEqual(['1', '2', '3']);
    expect(view?.messages.every((message) => !('sent' in message))).toBe(true);
    expect((await store.turnRecords(id)).map((turn) => turn.id)).toEqual(['t-1', 't-2', 't-3']);
  });
});

describe('removing a session', () => {
  const models = [{ model: 'demo/demo', calls: 2, inputTokens: 10, outputTokens: 5, cachedInputTokens: 1, costUsd: 0.5 }];

  it('leaves nothing of it but its usage', async () => {
    await using folder = await temporaryFolder();
    const id = newSessionId();
    const store = storeIn(folder.path);
    await store.appendHistory(id, [{ kind: 'turn', turn: turnRecord('t-1', models) }]);
    await store.publish(newSession(id, { messages: [userMessage('1')], turns: [turnRecord('t-2', models)] }));
    const removed = await store.remove(id);
    expect(removed?.usage).toEqual([
      expect.objectContaining({ day: '2026-11-20', agent: 'admin', channel: 'web', model: 'demo/demo', turns: 2, calls: 4, costUsd: 1 }),
    ]);
    expect(await listRemoved(store)).toEqual([removed]);
    expect(await store.load(id)).toBeUndefined();
    expect(await store.view(id)).toBeUndefined();
    expect(await store.remove(id)).toBeUndefined();
    expect((await readdir(folder.path)).toSorted()).toEqual(['.deleted.jsonl', '.revisions']);
    expect(await readdir(join(folder.path, '.revisions'))).toEqual([]);
    expect(await readFile(join(folder.path, '.deleted.jsonl'), 'utf8')).not.toContain('text of 1');
  });

  it('is finished by the next process that finds one cut off', async () => {
    await using folder = await temporaryFolder();
    const id = newSessionId();
    const session = newSession(id, { turns: [turnRecord('t-1', models)] });
    await storeIn(folder.path).publish(session);
    await storeIn(folder.path).remove(id);
    await writeFile(join(folder.path, `${id}.json`), JSON.stringify(session));
    await mkdir(join(folder.path, '.revisions', `.removed-${id}-0000`));
    const store = storeIn(folder.path);
    expect(await store.load(id)).toBeUndefined();
    await store.sweep();
    expect((await readdir(folder.path)).toSorted()).toEqual(['.deleted.jsonl', '.revisions']);
    expect(await readdir(join(folder.path, '.revisions'))).toEqual([]);
  });

  it('wins against a turn that is still running, and against its history', async () => {
    await using folder = await temporaryFolder();
    const id = newSessionId();
    const [worker, gateway] = [storeIn(folder.path), storeIn(folder.path)];
    await publishUpTo(worker, id, 2);
    await gateway.remove(id);
    await worker.appendHistory(id, [{ kind: 'message', message: userMessage('1') }]);
    await expect(worker.publish(newSession(id, { revision: 3 }))).rejects.toThrow(RevisionConflict);
    expect(await worker.load(id)).toBeUndefined();
    await worker.publish(newSession(id));
    expect((await worker.view(id))?.messages).toEqual([]);
  });
});
