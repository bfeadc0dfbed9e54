import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from '@jest/globals';
import { connectRedis } from '@concierge/runtime';
import { deriveSessionId, toContactFolder, type TenantScope } from '@concierge/tenant';
import { eventually, gate, indexBackends, silentLog, startPostgres, untilAborted, type TestPostgres } from '@concierge/testing';
import { ErasureReconciler, eraseContact, type ErasureOptions } from '../src/index.ts';
import { input, TestTurns, textDelta } from './test-turns.ts';

const ann = 'ann.lang@example.com';
const alias = '4917012345678';
const name = 'Annika Verylongname';
const operator = { kind: 'operator' } as const;

let cluster: TestPostgres | undefined;
afterAll(async () => await cluster?.stop());

interface Started {
  readonly fixture: TestTurns;
  readonly options: ErasureOptions;
  /** Ends the log of this process, and waits for the end of all erasures. */
  readonly finish: () => Promise<void>;
  /** Which of the words are in the data folder, the index or Redis. */
  readonly find: (words: readonly string[]) => Promise<string[]>;
}

async function start(stack: AsyncDisposableStack, database: string): Promise<Started> {
  if (database === 'PostgreSQL') cluster ??= await startPostgres();
  const databaseUrl = database === 'PostgreSQL' ? await cluster?.createDatabase() : undefined;
  const fixture = stack.use(await TestTurns.start({ databaseUrl }));
  const redis = connectRedis({ url: fixture.server.url, role: 'worker', log: silentLog });
  stack.defer(() => redis.disconnect());
  const { turns, tenants } = fixture;
  const options = { turns, redis, logsFolder: tenants.logsFolder, answerMs: 300_000, stopTimeoutMs: 120_000 };
  const reconciler = new ErasureReconciler({ ...options, tenants, log: silentLog });
  const finish = async (): Promise<void> => {
    await fixture.closeLog();
    const scope = await fixture.scope();
    const isFinished = async (): Promise<boolean> => {
      await reconciler.continueAll();
      return (await scope.erasures.running()).length === 0;
    };
    await eventually(isFinished, { timeoutMs: 120_000 });
  };
  const find = async (words: readonly string[]): Promise<string[]> => {
    const rows = databaseUrl === undefined ? '' : ((await cluster?.readAll(databaseUrl)) ?? '');
    const places = [...(await readFiles(fixture.dataDir)), Buffer.from(rows), Buffer.from(await readRedis(redis))];
    return words.filter((word) => places.some((bytes) => bytes.includes(word)));
  };
  return { fixture, options, find, finish };
}

async function readFiles(folder: string): Promise<Buffer[]> {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true });
  const paths = entries.map((entry) => join(entry.parentPath, entry.name));
  const files = entries.flatMap((entry, index) => (entry.isFile() ? [paths[index] ?? ''] : []));
  return [
    Buffer.from(paths.join('\n')),
    ...(await Promise.all(files.map(async (path) => await readFile(path).catch(() => Buffer.alloc(0))))),
  ];
}

async function readRedis(redis: ErasureOptions['redis']): Promise<string> {
  const found: unknown[] = [];
  for (const key of await redis.keys('*')) {
    const type = await redis.type(key);
    found.push(key);
    if (type === 'string') found.push(await redis.get(key));
    if (type === 'hash') found.push(await redis.hgetall(key));
    if (type === 'list') found.push(await redis.lrange(key, 0, -1));
    if (type === 'set') found.push(await redis.smembers(key));
    if (type === 'zset') found.push(await redis.zrange(key, 0, '-1'));
    if (type === 'stream') found.push(await redis.xrange(key, '-', '+'));
  }
  return JSON.stringify(found);
}

const words = {
  said: 'zqsaid',
  answered: 'zqanswered',
  history: 'zqhistory',
  note: 'zqnote',
  entry: 'zqentry',
  about: 'zqabout',
  upload: 'zqupload',
  sending: 'zqsending',
  dead: 'zqdead',
  event: 'zqevent',
  handoff: 'zqhandoff',
  notice: 'zqnotice',
  broken: 'zqbroken',
  alias,
  address: ann,
  name: 'Verylongname',
} as const;

/** A contact with something in every place where something is kept of one. */
async function plant(fixture: TestTurns, scope: TenantScope): Promise<string> {
  fixture.play = async (run) => {
    const text = run.turn.sender === ann ? words.answered : 'Good morning.';
    run.writer.emit(textDelta(text));
    await run.writer.flush();
    return text;
  };
  await fixture.worker();
  const { turnId, sessionId } = await fixture.turns.accept(scope, input(words.said, { sender: ann }));
  await fixture.read(scope, turnId);
  await scope.contacts.remember({ sender: ann, displayName: name });
  await scope.contacts.addAlias({ channel: 'channel_a', alias, sender: ann });
  await scope.memory.forContact(ann).write({ text: words.note });
  await scope.memory.write({ text: `${name} of ${ann} wants ${words.entry}\nand so on with ${words.entry}` });
  await scope.memory.write({ text: words.about, title: `About +49 170 1234-5678` });
  await scope.memory.write({ text: 'Somebody likes tea.' });
  await plantUpload(scope, { turnId, sessionId });
  await plantMessages(scope, { turnId, sessionId });
  await writeFile(join(scope.root, 'inbox', `${turnId}.json.broken`), words.broken);
  const signal = AbortSignal.timeout(120_000);
  // A search reads notes and conversations into the index.
  await scope.memorySearch.search({ access: 'owner' }, { text: words.said, limit: 5, signal });
  const searcher = { access: 'contact', agent: 'cs', sender: ann, sessionId } as const;
  expect((await scope.memorySearch.search(searcher, { text: words.note, limit: 5, signal })).total).toBeGreaterThan(0);
  return sessionId;
}

interface Conversation {
  readonly turnId: string;
  readonly sessionId: string;
}

async function plantUpload(scope: TenantScope, { turnId, sessionId }: Conversation): Promise<void> {
  const attachment = await scope.uploads.save({ name: 'a.txt', type: 'text/plain', bytes: Buffer.from(words.upload), text: words.upload });
  const message = { id: 'old', turnId, at: new Date().toISOString(), role: 'user', text: words.history, sent: words.history } as const;
  await scope.sessions.appendHistory(sessionId, [{ kind: 'message', message: { ...message, attachments: [attachment] } }]);
}

async function plantMessages(scope: TenantScope, { turnId, sessionId }: Conversation): Promise<void> {
  const outbound = { kind: 'message', channel: 'channel_a', to: alias, sessionId, agent: 'cs', turnId } as const;
  await scope.outbox.accept({ ...outbound, text: words.sending, callId: 'c1' });
  const { message } = await scope.outbox.accept({ ...outbound, text: words.dead, callId: 'c2' });
  const delivery = await scope.outbox.record(message.id, [
    { kind: 'end', at: new Date().toISOString(), state: 'failed', problem: { code: 'recipient_failed', message: 'blocked' } },
  ]);
  if (delivery !== undefined) await scope.outbox.end(delivery);
  await scope.events.endpoints.create({ url: 'https://example.com/hook', includeText: true });
  const at = new Date().toISOString();
  const data = { turnId, contact_id: sessionId, agent: 'cs', channel: 'web', origin: 'api', acceptedAt: at } as const;
  const ended = { ...data, usage: { inputTokens: 0, outputTokens: 0 }, finishReason: 'stop' } as const;
  await scope.events.emit({ type: 'turn.completed', key: turnId, at, data: ended, text: async () => await Promise.resolve(words.event) });
  const call = { agent: 'cs', channel: 'web', sender: ann, channelAddress: null, lastWords: words.notice, callsOwner: true } as const;
  await scope.handoffs.request(sessionId, { reason: words.handoff, by: operator, call });
}

for (const { name: database, available } of indexBackends) {
  (available ? describe : describe.skip)(`erasing a contact, with ${database}`, () => {
    it('leaves no word of it anywhere', async () => {
      await using stack = new AsyncDisposableStack();
      const { fixture, options, finish, find } = await start(stack, database);
      const scope = await fixture.scope();
      await fixture.turns.accept(scope, input('zqother', { sender: 'bob@example.com' }));
      await plant(fixture, scope);
      expect(await find(Object.values(words))).toEqual(Object.values(words));
      const begun = await eraseContact(options, scope, { sender: alias });
      expect(begun).toMatchObject({ id: toContactFolder(ann), erased: { notes: 1, uploads: 1, deliveries: 2, events: 1 } });
      await finish();
      const report = await scope.erasures.report(begun.id);
      expect(report).toMatchObject({ state: 'done', waitsFor: null, lookAt: [{ ref: 'MEMORY.md', why: 'cut' }] });
      expect(await find([...Object.values(words), 'zqother', 'Somebody likes tea.'])).toEqual(['zqother', 'Somebody likes tea.']);
      expect(await scope.contacts.find(ann)).toBeUndefined();
    });
  });
}

describe('an erasure', () => {
  it('ends the turns of the contact first, those that run and those that wait', async () => {
    await using stack = new AsyncDisposableStack();
    const { fixture, options, finish, find } = await start(stack, 'SQLite');
    const scope = await fixture.scope();
    const begun = gate();
    fixture.play = async (run) => {
      run.writer.emit(textDelta('zqstreamed'));
      await run.writer.flush();
      begun.open();
      await untilAborted(run.signal);
      return 'zqcut';
    };
    await fixture.worker();
    const { sessionId } = await fixture.turns.accept(scope, input('zqruns', { sender: ann }));
    await begun.opened;
    await fixture.turns.accept(scope, input('zqwaits', { sender: ann }));
    const { id } = await eraseContact(options, scope, { contact_id: sessionId });
    await finish();
    expect(await scope.erasures.report(id)).toMatchObject({ state: 'done', erased: { turns: 2 } });
    expect(await find(['zqruns', 'zqwaits', 'zqstreamed', 'zqcut', ann])).toEqual([]);
  });

  it('ends what waits of a contact of a suspended tenant, unanswered, and nothing else of that tenant', async () => {
    await using stack = new AsyncDisposableStack();
    const { fixture, options, finish, find } = await start(stack, 'SQLite');
    const scope = await fixture.scope();
    const answered: string[] = [];
    fixture.play = async ({ turn, signal }) => {
      if (!signal.aborted) answered.push(turn.turnId);
      return await Promise.resolve('yes');
    };
    await fixture.tenants.setSuspended(scope.tenantId, true);
    const other = await fixture.turns.accept(scope, input('zqother', { sender: 'bob@example.com' }));
    const { sessionId } = await fixture.turns.accept(scope, input('zqwaits', { sender: ann }));
    expect(await eraseContact({ ...options, stopTimeoutMs: 0 }, scope, { contact_id: sessionId })).toMatchObject({ waitsFor: 'turns' });
    await fixture.worker();
    await finish();
    expect(await find(['zqwaits', ann])).toEqual([]);
    expect(answered).toEqual([]);
    expect(await scope.inbox.turnIds()).toEqual([other.turnId]);
  });

  it('waits for turns that do not end, and says so', async () => {
    await using stack = new AsyncDisposableStack();
    const { fixture, options, finish } = await start(stack, 'SQLite');
    const scope = await fixture.scope();
    await fixture.turns.accept(scope, input('waits for a worker', { sender: ann }));
    const report = await eraseContact({ ...options, stopTimeoutMs: 0 }, scope, { sender: ann });
    expect(report).toMatchObject({ state: 'running', waitsFor: 'turns' });
    await fixture.worker();
    await eventually(async () => (await scope.inbox.turnIds()).length === 0);
    await finish();
    expect(await scope.erasures.report(report.id)).toMatchObject({ state: 'done' });
  });

  it('leaves what only mentions the contact, and lists it', async () => {
    await using stack = new AsyncDisposableStack();
    const { fixture, options } = await start(stack, 'SQLite');
    const scope = await fixture.scope();
    await scope.contacts.remember({ sender: ann, displayName: 'Annika' });
    await scope.memory.write({ text: 'Annika prefers mornings.' });
    await scope.files.writeText('lists/customers.csv', `name,address\nAnnika,${ann}\n`);
    await scope.files.writeText('lists/others.csv', 'Annikas,annalang@example.com\n');
    const { lookAt } = await eraseContact(options, scope, { sender: ann });
    expect(lookAt.toSorted((one, other) => (one.ref < other.ref ? -1 : 1))).toEqual([
      { kind: 'note', ref: 'MEMORY.md', why: 'named' },
      { kind: 'file', ref: 'lists/customers.csv', why: 'named' },
    ]);
  });

  it('removes earlier versions of files that name the contact, and no others', async () => {
    await using stack = new AsyncDisposableStack();
    const { fixture, options } = await start(stack, 'SQLite');
    const scope = await fixture.scope();
    await scope.contacts.remember({ sender: ann, displayName: name });
    const write = async (text: string): Promise<unknown> => scope.fileHistory.write('USER.md', { text, by: operator });
    await write('Opens at nine.');
    await write(`Opens at nine. Call ${ann}.`);
    await write('Opens at ten.');
    await eraseContact(options, scope, { sender: ann });
    const versions = await scope.fileHistory.list('USER.md');
    const texts = await Promise.all(
      versions.map(async ({ id }) => (await scope.fileHistory.list('USER.md', id)).find((one) => one.id === id)?.text),
    );
    expect(texts).toContain('Opens at nine.');
    expect(texts.join(' ')).not.toContain(ann);
  });

  it('is about the contact that was there: what it writes afterwards is new, and stays', async () => {
    await using stack = new AsyncDisposableStack();
    const { fixture, options, finish } = await start(stack, 'SQLite');
    const scope = await fixture.scope();
    await fixture.worker();
    const first = await fixture.turns.accept(scope, input('before', { sender: ann }));
    await fixture.read(scope, first.turnId);
    const { id } = await eraseContact(options, scope, { sender: ann });
    const second = await fixture.turns.accept(scope, input('after', { sender: ann }));
    await fixture.read(scope, second.turnId);
    await finish();
    expect(await scope.erasures.report(id)).toMatchObject({ state: 'done', erased: { sessions: 1 } });
    expect((await scope.sessions.load(second.sessionId))?.turns.map((turn) => turn.id)).toEqual([second.turnId]);
  });

  it.each(['after-begin', 'before-sessions', 'after-sessions', 'before-finish'])(
    'is finished by another process after kill -9 %s',
    async (place) => {
      await using stack = new AsyncDisposableStack();
      const { fixture, finish, find } = await start(stack, 'SQLite');
      const scope = await fixture.scope();
      await plant(fixture, scope);
      const eraser = fileURLToPath(new URL('./contact-eraser.ts', import.meta.url));
      const args = [
        '--conditions=@concierge/source',
        '--no-warnings',
        eraser,
        fixture.server.url,
        fixture.dataDir,
        ann,
        `erasure.${place}:kill`,
      ];
      const [, killed] = await once(spawn(process.execPath, args, { stdio: ['ignore', 'inherit', 'inherit'] }), 'exit');
      expect(killed).toBe('SIGKILL');
      // The claim of the process that died has to end.
      await finish();
      expect(await find(Object.values(words))).toEqual([]);
      expect((await scope.index.listSessions({ limit: 10 })).items).toEqual([]);
    },
    240_000,
  );

  it('finds nothing of the owner’s own by the id of a conversation', async () => {
    await using stack = new AsyncDisposableStack();
    const { fixture, options } = await start(stack, 'SQLite');
    const scope = await fixture.scope();
    await expect(eraseContact(options, scope, { contact_id: deriveSessionId('cs', 'web', ann) })).rejects.toMatchObject({
      code: 'not_found',
    });
  });
});
