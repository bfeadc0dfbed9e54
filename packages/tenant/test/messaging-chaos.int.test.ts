import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import type { TenantScope } from '../src/tenant-scope.ts';
import { newSession, startTenants, until } from './support.ts';

const writerPath = fileURLToPath(new URL('./messaging-writer.ts', import.meta.url));
const contactWriterPath = fileURLToPath(new URL('./contact-writer.ts', import.meta.url));

function start(path: string, args: readonly string[]): ChildProcessByStdio<null, Readable, null> {
  return spawn(process.execPath, ['--conditions=@concierge/source', '--no-warnings', path, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}

/** Kills the writer in the middle of its work, when it has had so many messages accepted; their marks. */
async function writeAndDie(args: readonly string[], accepted: number): Promise<string[]> {
  const child = start(writerPath, args);
  const marks: string[] = [];
  createInterface({ input: child.stdout }).on('line', (mark) => {
    if (marks.push(mark) === accepted) child.kill('SIGKILL');
  });
  await once(child, 'close');
  return marks;
}

describe('messaging stores under kill -9', () => {
  it('have every message that was accepted, and nothing that is half written', async () => {
    await using fixture = await startTenants();
    const scope = await fixture.tenants.create('acme');
    const { id } = await scope.schedules.create(
      { name: 'first', message: 'of first', schedule: { every: '1h' } },
      { by: { kind: 'operator' }, authority: 'admin' },
    );
    const root = join(fixture.dataDir, 'tenants', 'acme');
    const rounds = Array.from({ length: 9 }, async (_, index) => writeAndDie([root, id], 3 + index));
    const marks = (await Promise.all(rounds)).flat();
    const waiting = await scope.outbox.waiting();
    expect(waiting.map(({ text }) => text)).toEqual(expect.arrayContaining(marks));
    expect(marks.length).toBeGreaterThanOrEqual(63);
    const schedule = await scope.schedules.find(id);
    expect(schedule?.message).toBe(`of ${String(schedule?.name)}`);
    const opened = await scope.channels.open('channel_c');
    expect(opened?.botToken).toBe(opened?.secretToken);
    const [lane = ''] = await scope.outbox.lanes();
    const records = await Promise.all([`outbox/${lane}`, 'cron', 'channels'].map(async (folder) => readdir(join(root, folder))));
    expect(records.flat().filter((name) => !name.startsWith('.tmp-') && !name.endsWith('.json'))).toEqual([]);
  });
});

describe('the name of a contact whose writer was killed', () => {
  const sender = '4915112345678';

  /** Another process learns the name, and is killed at this point; its signal. */
  async function rememberAndDie(dataDir: string, point: string, displayName: string): Promise<unknown> {
    const child = start(contactWriterPath, [dataDir, sender, displayName, `${point}:kill`]);
    const [, signal] = await once(child, 'close');
    return signal;
  }

  const lists = {
    named: async ({ contacts }: TenantScope, text: string) => (await contacts.search(text, 5)).map((contact) => contact.sender),
    contacts: async ({ contacts }: TenantScope, q: string) =>
      (await contacts.listKnown({ q, limit: 5 })).items.map((known) => known.sender),
    sessions: async ({ index }: TenantScope, text: string) =>
      (await index.listSessions({ words: { text }, limit: 5 })).items.map((session) => session.sender),
  };

  it.each(['named', 'contacts', 'sessions'] as const)(
    'is found by the next search of the list %s, the former one no more',
    async (list) => {
      await using fixture = await startTenants();
      const scope = await fixture.tenants.create('acme');
      const session = newSession('0'.repeat(32), { sender, channel: 'channel_a' });
      await scope.sessions.publish(session);
      await scope.index.putSession(session);
      await scope.contacts.remember({ sender, displayName: 'Ann Miller' });
      const find = lists[list];
      expect([await find(scope, 'miller'), await find(scope, 'reilly')]).toEqual([[sender], []]);
      expect(await rememberAndDie(fixture.dataDir, 'contact.after-file', 'Ann Reilly')).toBe('SIGKILL');
      expect(await find(scope, 'reilly')).toEqual([sender]);
      expect(await find(scope, 'miller')).toEqual([]);
      expect((await scope.compareIndex()).contacts).toEqual({ added: 0, changed: 0, removed: 0 });
    },
  );

  it('is nowhere when its file was not written yet', async () => {
    await using fixture = await startTenants();
    const scope = await fixture.tenants.create('acme');
    expect(await rememberAndDie(fixture.dataDir, 'contact.before-file', 'Ann Reilly')).toBe('SIGKILL');
    expect(await scope.contacts.search('reilly', 5)).toEqual([]);
    await scope.contacts.remember({ sender, displayName: 'Ann Reilly' });
    expect(await scope.contacts.search('reilly', 5)).toMatchObject([{ sender }]);
    // The mark of the killed writer is young; that of the other is gone, on a slow disk after the answer.
    const listMarks = async (): Promise<string[]> => readdir(join(fixture.dataDir, 'tenants', 'acme', 'contacts', '.unindexed'));
    await until(async () => (await listMarks()).length === 1);
    expect(await listMarks()).toHaveLength(1);
  });
});
