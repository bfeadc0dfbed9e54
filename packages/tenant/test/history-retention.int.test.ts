import { appendFileSync } from 'node:fs';
import { utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { DAY_MS, type HistoryLine } from '@concierge/contract';
import { removeExpired } from '../src/retention/retention.ts';
import type { TenantScope } from '../src/tenant-scope.ts';
import { newSession, newSessionId, startTenants, turnRecord, userMessage } from './support.ts';

const models = [{ model: 'demo/demo', calls: 1, inputTokens: 7, outputTokens: 1, cachedInputTokens: 0, costUsd: null }];
/** As if a month had gone by. */
const look = () => ({ rule: { historyDays: 30 }, nowMs: Date.now() + 31 * DAY_MS });

function said(id: string, text: string): Extract<HistoryLine, { kind: 'message' }> {
  return { kind: 'message', message: { ...userMessage(id), text } };
}

async function listMessages(scope: TenantScope, sessionId: string): Promise<string[] | undefined> {
  return (await scope.sessions.view(sessionId))?.messages.map(({ id }) => id);
}

describe('messages that compaction took out, removed by their days', () => {
  it('leave the usage of their turns, also where the index is rebuilt', async () => {
    await using world = await startTenants();
    const scope = await world.tenants.create('acme');
    const id = newSessionId();
    await scope.sessions.appendHistory(id, [said('old', 'Long ago.'), { kind: 'turn', turn: turnRecord('t-old', models) }]);
    await scope.sessions.publish(newSession(id, { messages: [userMessage('new')], turns: [turnRecord('t-new', models)] }));
    await scope.reindex();
    const usage = await scope.index.usage({});
    expect(usage).toEqual([expect.objectContaining({ turns: 2, inputTokens: 14 })]);
    expect((await removeExpired(scope, look())).history.map((one) => one.id)).toEqual([id]);
    expect(await listMessages(scope, id)).toEqual(['new']);
    await scope.reindex();
    expect(await scope.index.usage({})).toEqual(usage);
    expect((await removeExpired(scope, look())).history).toEqual([]);
  });

  it('are not found by searches any more', async () => {
    await using world = await startTenants();
    const scope = await world.tenants.create('acme');
    const id = newSessionId();
    await scope.sessions.appendHistory(id, [said('old', 'The xylophone is broken.')]);
    await scope.sessions.publish(newSession(id, { messages: [said('new', 'The kettle is green.').message] }));
    const search = async (text: string): Promise<string[]> => {
      const query = { text, limit: 5, signal: new AbortController().signal };
      return (await scope.memorySearch.search({ access: 'owner' }, query)).hits.map(({ ref }) => ref);
    };
    expect(await search('xylophone')).toEqual([id]);
    await removeExpired(scope, look());
    expect(await search('xylophone')).toEqual([]);
    expect(await search('kettle')).toEqual([id]);
  });

  it('stay where compaction puts more away while conversations are being removed', async () => {
    await using world = await startTenants();
    const [gone, kept] = [newSessionId(), newSessionId()];
    const path = join((await world.tenants.create('acme')).root, 'sessions', `${kept}.history.jsonl`);
    // Told of the conversation that is removed: what is to be removed was found by then.
    const tell = (): void => {
      appendFileSync(path, `${JSON.stringify(said('new', 'Just now.'))}\n`);
    };
    const scope = await (await world.another({ tell })).open('acme');
    const ago = new Date(Date.now() - 100 * DAY_MS);
    await scope.sessions.publish(newSession(gone, { updatedAt: ago.toISOString() }));
    await scope.sessions.appendHistory(kept, [said('old', 'Long ago.')]);
    await utimes(path, ago, ago);
    await scope.sessions.publish(newSession(kept, { updatedAt: new Date().toISOString() }));
    const removed = await removeExpired(scope, { rule: { sessionsDays: 30, historyDays: 30 }, nowMs: Date.now() });
    expect(removed).toMatchObject({ sessions: [gone], history: [] });
    expect(await listMessages(scope, kept)).toEqual(['old', 'new']);
  });
});
