import { readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { TenantScope } from '@concierge/tenant';
import { eventually, silentLog } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';
import type { Core } from '@concierge/testing/core';
import { keyOf } from '../src/keys.ts';
import { LogRecovery, removeTenant, type TurnWorker } from '../src/index.ts';
import { listLogs, readContent } from '../src/wal/log-records.ts';
import { holdClock, input, TestTurns } from './test-turns.ts';

let fixture: TestTurns;
let scope: TenantScope;
let core: Core;
let worker: TurnWorker;
let sessionId: string;

setUpEach(async (stack) => {
  fixture = stack.use(await TestTurns.start());
  scope = await fixture.scope();
  core = await fixture.another();
});

const sessionsFolder = (): string => join(scope.root, 'sessions');
const logsFolder = (): string => fixture.tenants.logsFolder;
const answer = async (text: string, facts: Parameters<typeof input>[1] = {}): Promise<string> => {
  const { turnId, sessionId: id } = await fixture.turns.accept(scope, input(text, facts));
  await fixture.read(scope, turnId);
  return id;
};
/** From the files alone: another process has nothing in its memory. */
const texts = async (id = sessionId): Promise<string[]> => {
  const opened = await (await fixture.another()).tenants.open('acme');
  return ((await opened.sessions.view(id))?.messages ?? []).flatMap((message) => (message.role === 'user' ? [message.text] : []));
};
const logged = async (): Promise<number> => {
  const logs = await Promise.all((await listLogs(logsFolder())).map(async (id) => readContent(logsFolder(), id)));
  return logs.flatMap(({ sessions }) => sessions).length;
};
const earlier = '00000000';
/** Of the processes that the power cut ended. */
const deadLogs = async (): Promise<string[]> => (await listLogs(logsFolder())).filter((id) => id.startsWith(earlier));
const toEarlier = (id: string): string => `${earlier}${id.slice(earlier.length)}`;
/** What a worker does before its first turn. */
const recover = async (): Promise<void> => new LogRecovery({ ...core, log: silentLog }).recoverEarlierBoots();
/**
 * The power goes: what was not synced is gone, with the process, and the machine starts again. `Redis` had saved all.
 */
const losePower = async (harm: () => Promise<unknown>): Promise<void> => {
  await worker.stop(0);
  for (const id of await listLogs(logsFolder())) await rename(join(logsFolder(), id), join(logsFolder(), toEarlier(id)));
  await core.redis.del(keyOf.logs);
  await harm();
};

beforeEach(async () => {
  // What is in a log stays there: nothing is synced, and no log counts as given up.
  holdClock();
  worker = await fixture.worker();
  // The first one finds no log open.
  await answer('opens the log', { sender: 'early' });
  await eventually(async () => (await listLogs(logsFolder())).length > 0);
  sessionId = await answer('one', { sender: 'ann' });
});

afterEach(() => {
  jest.restoreAllMocks();
});

describe('a session that is published in the log', () => {
  it('is in its file at once, and in the log until that is synced', async () => {
    expect(await readdir(sessionsFolder())).toContain(`${sessionId}.json`);
    expect(await texts()).toEqual(['one']);
    expect(await logged()).toBe(2);
  });

  it('leaves nothing in the log of a process that ends', async () => {
    const own = await core.tenants.open('acme');
    const session = await own.sessions.load(sessionId);
    if (session === undefined) throw new Error('no session');
    await own.sessions.publish({ ...session, revision: session.revision + 1 });
    const [before, contents] = [await listLogs(logsFolder()), await logged()];
    await core.accepted.stop();
    expect((await listLogs(logsFolder())).length).toBe(before.length - 1);
    expect(contents - (await logged())).toBe(1);
  });

  it.each([
    ['its files', async () => rm(sessionsFolder(), { recursive: true })],
    ['the content of its files', async () => tear('')],
    ['the end of its files', async () => tear('{"version":1,"id":"')],
    ['the content of the one before', async () => writeFile(join(sessionsFolder(), '.revisions', sessionId, '0000000001.json'), '')],
    ['its newest revision', async () => rm(join(sessionsFolder(), '.revisions', sessionId, '0000000002.json'))],
  ])('is whole when a power cut takes %s', async (_, harm) => {
    await answer('two', { sender: 'ann' });
    await losePower(harm);
    await recover();
    expect(await texts()).toEqual(['one', 'two']);
    expect(await deadLogs()).toEqual([]);
    await fixture.worker();
    await answer('three', { sender: 'ann' });
    expect(await texts()).toEqual(['one', 'two', 'three']);
  });

  it('is whole when the power goes again in the middle of the recovery', async () => {
    await losePower(async () => rm(sessionsFolder(), { recursive: true }));
    await writeFile(sessionsFolder(), '');
    await recover();
    await rm(sessionsFolder());
    expect((await deadLogs()).length).toBe(1);
    await Promise.all([recover(), recover()]);
    expect(await texts()).toEqual(['one']);
  });

  it('does not take the place of a later revision, of whichever process', async () => {
    await losePower(async () => Promise.resolve());
    const { tenants } = await fixture.another();
    const other = await tenants.open('acme');
    const session = await other.sessions.load(sessionId);
    if (session === undefined) throw new Error('no session');
    await other.sessions.publish({ ...session, revision: session.revision + 1, title: 'later' });
    await recover();
    expect(await (await fixture.another()).tenants.open('acme').then(async (opened) => opened.sessions.load(sessionId))).toMatchObject({
      revision: session.revision + 1,
      title: 'later',
    });
  });

  it('stays removed when it was removed since', async () => {
    expect(await scope.removeSession(sessionId)).toBe(true);
    await losePower(async () => Promise.resolve());
    await recover();
    expect(await texts()).toEqual([]);
    expect(await readdir(sessionsFolder())).not.toContain(`${sessionId}.json`);
  });

  it('does not come to a tenant that is made later with the same name', async () => {
    await losePower(async () => Promise.resolve());
    await removeTenant({ tenants: fixture.tenants, turns: fixture.turns, redis: core.redis }, 'acme');
    const heir = await fixture.tenants.create('acme');
    await recover();
    expect(await heir.sessions.load(sessionId)).toBeUndefined();
  });

  it('is not waited for where its log is of another machine, which renews it', async () => {
    await losePower(async () => Promise.resolve());
    const elsewhere = await deadLogs();
    const renew = async (): Promise<unknown> => Promise.all(elsewhere.map(async (id) => core.redis.zadd(keyOf.logs, Date.now(), id)));
    await renew();
    const renewals = setInterval(() => void renew(), 100);
    await recover();
    clearInterval(renewals);
    expect(await deadLogs()).toEqual(elsewhere);
  });
});

async function tear(rest: string): Promise<void> {
  const folder = join(sessionsFolder(), '.revisions', sessionId);
  for (const name of await readdir(folder)) if (name.endsWith('.json')) await writeFile(join(folder, name), rest);
  await rm(join(sessionsFolder(), `${sessionId}.json`));
}
