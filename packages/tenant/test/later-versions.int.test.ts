import { appendFile, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { keyScopes } from '@concierge/contract';
import type { TenantScope } from '../src/index.ts';
import { acceptedTurn, at, newSession, newSessionId, startTenants, turnRecord, userMessage, type TestTenants } from './support.ts';

let fixture: TestTenants;
let scope: TenantScope;

beforeEach(async () => {
  fixture = await startTenants();
  scope = await fixture.tenants.create('acme');
});
afterEach(async () => fixture[Symbol.asyncDispose]());

const asLater = expect.objectContaining({ code: 'LATER_VERSION' });
const operator = { kind: 'operator' } as const;

function toPath(...path: readonly string[]): string {
  return join(fixture.dataDir, 'tenants', 'acme', ...path);
}

async function readJson(...path: readonly string[]): Promise<Record<string, unknown>> {
  return JSON.parse(await readFile(toPath(...path), 'utf8'));
}

/** As a later version would have written it; the text that stands there then. */
async function add(path: readonly string[], fields: object): Promise<string> {
  const text = JSON.stringify({ ...(await readJson(...path)), ...fields });
  await writeFile(toPath(...path), text);
  return text;
}

/** The same files, by a process that has read none of them. */
async function elsewhere(): Promise<TenantScope> {
  return (await fixture.another()).open('acme');
}

describe('what a later version has added', () => {
  it('to a session stays in it, in its messages and in its turns, and is not shown', async () => {
    const id = newSessionId();
    const message = { ...userMessage('m1'), mood: 'glad' };
    const call = { id: 'c', name: 'read', arguments: '{}', cost: 3 };
    const answer = { id: 'm2', turnId: 't', at, role: 'assistant' as const, text: 'hi', toolCalls: [call], thoughts: 'hm' };
    const result = { id: 'm3', turnId: 't', at, role: 'tool', callId: 'c', name: 'read', output: 'o', isError: false, bytes: 1 } as const;
    const turn = { ...turnRecord('t'), budget: 7 };
    await scope.sessions.publish({ ...newSession(id), messages: [message, answer, result], turns: [turn] });
    const path = ['sessions', '.revisions', id, '0000000001.json'];
    await add(path, { tags: ['vip'] });

    const other = await elsewhere();
    const session = await other.sessions.load(id);
    if (session === undefined) throw new Error('no session');
    await other.sessions.publish({ ...session, revision: 2, title: 'Another title' });
    const before = await readJson(...path);
    expect(await readJson('sessions', `${id}.json`)).toEqual({ ...before, revision: 2, title: 'Another title' });
    expect(before).toMatchObject({ tags: ['vip'], messages: [message, answer, result], turns: [turn] });
    expect(JSON.stringify(await other.sessions.view(id))).not.toMatch(/vip|glad|thoughts|budget/u);
  });

  it('to the names that only inform is read as it is', async () => {
    const id = newSessionId();
    const error = { code: 'budget_spent', message: 'No money left.' };
    await scope.sessions.publish({ ...newSession(id), turns: [turnRecord('t')] });
    const turns = [{ ...turnRecord('t'), status: 'failed', origin: 'email', finishReason: 'budget', error }];
    await add(['sessions', '.revisions', id, '0000000001.json'], { turns, origin: 'email' });
    expect(await (await elsewhere()).sessions.load(id)).toMatchObject({ turns, origin: 'email' });
  });

  it('to a turn stays in what its inbox file contains', async () => {
    const turn = { ...acceptedTurn('t-1'), priority: 3 };
    await scope.inbox.accept(turn);
    expect(await (await elsewhere()).inbox.read('t-1')).toEqual(turn);
  });

  it('to records stays in them when they are changed, and is not shown', async () => {
    const { id: scheduleId } = await scope.schedules.create(
      { name: 'S', message: 'm', schedule: { every: '1h' } },
      {
        authority: 'admin',
        by: operator,
      },
    );
    const { id: endpointId } = await scope.events.endpoints.create({ url: 'https://example.com/hook' });
    const { id: keyId } = await scope.keys.create({ scopes: ['read'] }, keyScopes);
    await scope.mcp.put('shop', {
      url: 'https://example.com/mcp',
      headers: {},
      agents: ['admin'],
      tools: null,
      timeoutMs: 1000,
      enabled: true,
    });
    await scope.widget.rotateKey();
    const files = {
      schedule: ['cron', `${scheduleId}.json`],
      endpoint: ['events', 'endpoints', `${endpointId}.json`],
      key: ['keys', `${keyId}.json`],
      mcp: ['mcp', 'shop.json'],
      widget: ['widget', 'widget.json'],
    };
    for (const path of Object.values(files)) await add(path, { secretOfLater: { deep: [1] } });
    await add(files.endpoint, { types: ['turn.completed', 'turn.paused'] });
    await add(files.key, { scopes: ['read', 'billing'] });

    const other = await elsewhere();
    const { schedules, events, keys, mcp, widget } = other;
    const shown = [
      schedules.view(await schedules.update(scheduleId, { name: 'Another' })),
      await events.endpoints.update(endpointId, { description: 'Another' }),
      await keys.revoke(keyId),
      await mcp.put('shop', { url: 'https://example.com/2', headers: {}, agents: ['admin'], tools: null, timeoutMs: 1000, enabled: true }),
      await widget.rotateKey(),
    ];
    expect(JSON.stringify(shown)).not.toContain('secretOfLater');
    for (const path of Object.values(files)) expect(await readJson(...path)).toMatchObject({ secretOfLater: { deep: [1] } });
    expect(await readJson(...files.endpoint)).toMatchObject({ types: ['turn.completed', 'turn.paused'], description: 'Another' });
    expect(await readJson(...files.key)).toMatchObject({ scopes: ['read', 'billing'], revokedAt: expect.any(String) });
  });

  it('to the settings is reported, has no effect, and stays when others change', async () => {
    for (const path of [['tenant.json'], ['settings', 'last-good.json']]) await add(path, { budget: { daily: 5 } });
    const other = await elsewhere();
    expect(await other.settings()).toMatchObject({ plan: 'standard', budget: { daily: 5 } });
    expect(other.settingsProblem()).toContain('budget');
    await other.updateSettings({ name: 'Acme' });
    expect(await readJson('tenant.json')).toEqual({ plan: 'standard', budget: { daily: 5 }, name: 'Acme' });
  });
});

describe('what a later version alone understands', () => {
  it('of sessions is left where it is, and the other sessions are there', async () => {
    const [numbered, spoken, known] = [newSessionId(), newSessionId(), newSessionId()];
    for (const id of [numbered, spoken, known]) await scope.sessions.publish(newSession(id));
    const toRevision = (id: string): string[] => ['sessions', '.revisions', id, '0000000001.json'];
    const texts = [
      await add(toRevision(numbered), { version: 2, messages: 'elsewhere' }),
      await add(toRevision(spoken), { messages: [{ ...userMessage('m'), role: 'narrator' }] }),
    ];

    const other = await elsewhere();
    for (const id of [numbered, spoken]) await expect(other.sessions.load(id)).rejects.toEqual(asLater);
    expect(await Promise.all([numbered, spoken].map(async (id) => readFile(toPath(...toRevision(id)), 'utf8')))).toEqual(texts);
    expect(await readdir(toPath('sessions', '.revisions', numbered))).not.toContain('0000000001.json.broken');
    await other.reindex();
    expect((await other.index.listSessions({ limit: 9 })).items.map(({ id }) => id)).toEqual([known]);
  });

  it('of turns is left in the inbox, with its steps', async () => {
    for (const turnId of ['t-1', 't-2', 't-3']) await scope.inbox.accept(acceptedTurn(turnId));
    await add(['inbox', 't-1.json'], { version: 2 });
    await add(['inbox', 't-2.json'], { origin: 'email' });
    await scope.inbox.appendJournal('t-3', [{ kind: 'intent', callId: 'c', name: 'read' }]);
    await appendFile(toPath('inbox', 't-3.journal.jsonl'), `${JSON.stringify({ kind: 'approval', callId: 'c' })}\n`);
    const { inbox } = await elsewhere();
    for (const turnId of ['t-1', 't-2']) await expect(inbox.read(turnId)).rejects.toEqual(asLater);
    await expect(inbox.readJournal('t-3')).rejects.toEqual(asLater);
    expect((await inbox.filedTurnIds()).toSorted()).toEqual(['t-1', 't-2', 't-3']);
  });

  it('of records is neither used nor overwritten', async () => {
    const { id } = await scope.schedules.create(
      { name: 'S', message: 'm', schedule: { every: '1h' } },
      { authority: 'admin', by: operator },
    );
    const sessionId = newSessionId();
    await scope.handoffs.request(sessionId, { reason: 'Help.', by: operator });
    const paths = [
      ['cron', `${id}.json`],
      ['handoffs', `${sessionId}.json`],
    ];
    const texts = await Promise.all(paths.map(async (path) => add(path, { version: 2 })));

    const { schedules, handoffs } = await elsewhere();
    expect((await schedules.list()).broken).toEqual([{ id, reason: expect.stringContaining('later version') }]);
    await expect(schedules.update(id, { name: 'Another' })).rejects.toEqual(asLater);
    expect(await handoffs.isPaused(sessionId)).toBe(true);
    await expect(handoffs.resume(sessionId, operator)).rejects.toEqual(asLater);
    await expect(handoffs.request(sessionId, { reason: 'Again.', by: operator })).rejects.toEqual(asLater);
    expect(await Promise.all(paths.map(async (path) => readFile(toPath(...path), 'utf8')))).toEqual(texts);
  });

  it('of settings is not overwritten', async () => {
    const text = await add(['tenant.json'], { channels: { web: { busy: 'bargeIn' } } });
    const other = await elsewhere();
    expect(await other.settings()).toEqual({ plan: 'standard' });
    await expect(other.updateSettings({ name: 'Acme' })).rejects.toMatchObject({ code: 'conflict' });
    expect(await readFile(toPath('tenant.json'), 'utf8')).toBe(text);
  });

  it('of messages to send keeps its place in the outbox, and holds nobody else up', async () => {
    const message = { kind: 'message', channel: 'channel_a', sessionId: newSessionId(), text: 'Hi', agent: 'admin', turnId: 't' } as const;
    const first = (await scope.outbox.accept({ ...message, to: '4242', callId: 'c1' })).message.id;
    await scope.outbox.accept({ ...message, to: '4242', callId: 'c2' });
    const other = (await scope.outbox.accept({ ...message, to: '1717', callId: 'c3' })).message.id;
    const lane = first.slice(2, 14);
    await add(['outbox', lane, `${first}.json`], { kind: 'carousel' });
    const { outbox } = await elsewhere();
    await expect(outbox.head(lane)).rejects.toEqual(asLater);
    expect((await outbox.waiting()).map(({ id }) => id)).toEqual([other]);
    expect(await readdir(toPath('outbox', lane))).toContain(`${first}.json`);

    const otherLane = other.slice(2, 14);
    expect((await outbox.head(otherLane))?.message.id).toBe(other);
    await writeFile(toPath('outbox', otherLane, `${other}.journal.jsonl`), `${JSON.stringify({ kind: 'held', at })}\n`);
    await expect(outbox.head(otherLane)).rejects.toEqual(asLater);
  });

  it('of a history is kept, and the rest is shown', async () => {
    const id = newSessionId();
    await scope.sessions.publish(newSession(id));
    await scope.sessions.appendHistory(id, [{ kind: 'message', message: userMessage('m') }]);
    const path = toPath('sessions', `${id}.history.jsonl`);
    const text = `${await readFile(path, 'utf8')}${JSON.stringify({ kind: 'image', ref: 'x' })}\n`;
    await writeFile(path, text);
    const { sessions } = await elsewhere();
    expect((await sessions.view(id))?.messages.map((message) => message.id)).toEqual(['m']);
    await expect(sessions.rewriteHistory(id, async (message) => Promise.resolve(message))).rejects.toEqual(asLater);
    expect(await readFile(path, 'utf8')).toBe(text);
  });
});
