import { readdir, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import { DAY_MS, type RetentionRule } from '@concierge/contract';
import { removeExpired, reportExpired, type TenantScope } from '@concierge/tenant';
import { connectRedis } from '@concierge/runtime';
import { eventually, gate, indexBackends, onePixelPng, silentLog, startPostgres, type TestPostgres } from '@concierge/testing';
import { RetentionReconciler } from '../src/index.ts';
import { input, TestTurns } from './test-turns.ts';

/** As if so many days had gone by. */
const later = (days: number): number => Date.now() + days * DAY_MS;

async function collect<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const found: Item[] = [];
  for await (const item of items) found.push(item);
  return found;
}

async function listIds(scope: TenantScope): Promise<string[]> {
  return (await collect(scope.sessions.ids())).toSorted();
}

/** A conversation with one answered message, which the lists have. */
async function talk(fixture: TestTurns, sender: string): Promise<string> {
  const scope = await fixture.scope();
  const { turnId, sessionId } = await fixture.turns.accept(scope, input('Hello', { sender }));
  await fixture.read(scope, turnId);
  await eventually(async () => (await scope.index.listSessions({ limit: 200 })).items.some(({ id }) => id === sessionId));
  await eventually(async () => !(await scope.busySessions()).has(sessionId));
  return sessionId;
}

async function saveUpload(scope: TenantScope): Promise<string> {
  return (await scope.uploads.save({ name: 'tea.png', type: 'image/png', bytes: onePixelPng })).id;
}

async function setRule(scope: TenantScope, retention: RetentionRule): Promise<void> {
  await scope.updateSettings({ retention });
}

let cluster: TestPostgres | undefined;
afterAll(async () => await cluster?.stop());

for (const { name: database, available } of indexBackends) {
  (available ? describe : describe.skip)(`a retention rule, with ${database}`, () => {
    it('removes conversations after their days, and no other', async () => {
      if (database === 'PostgreSQL') cluster ??= await startPostgres();
      const databaseUrl = database === 'PostgreSQL' ? await cluster?.createDatabase() : undefined;
      await using fixture = await TestTurns.start({ databaseUrl });
      await fixture.worker();
      const scope = await fixture.scope();
      const ids = [await talk(fixture, 'ann'), await talk(fixture, 'bob')];
      expect(await removeExpired(scope, { rule: { sessionsDays: 30 }, nowMs: later(29) })).toMatchObject({ sessions: [] });
      const removed = await removeExpired(scope, { rule: { sessionsDays: 30 }, nowMs: later(31) });
      expect(removed.sessions.toSorted()).toEqual(ids.toSorted());
      expect(await listIds(scope)).toEqual([]);
      expect((await scope.index.listSessions({ limit: 200 })).items).toEqual([]);
      expect((await collect(scope.sessions.removed())).map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
    });
  });
}

describe('a retention rule', () => {
  it('keeps what waits for an answer and what staff has, however old', async () => {
    await using fixture = await TestTurns.start();
    await fixture.worker();
    const scope = await fixture.scope();
    const [waiting, handedOver, old] = [await talk(fixture, 'ann'), await talk(fixture, 'bob'), await talk(fixture, 'cyd')];
    const call = { agent: 'cs', channel: 'web', sender: 'bob', channelAddress: null, lastWords: 'Help', callsOwner: true } as const;
    await scope.handoffs.request(handedOver, { reason: 'asked', by: { kind: 'operator' }, call });
    const [begun, go] = [gate(), gate()];
    fixture.play = async () => {
      begun.open();
      await go.opened;
      return 'Yes.';
    };
    const { turnId } = await fixture.turns.accept(scope, input('Still there?', { sender: 'ann' }));
    await begun.opened;
    const look = { rule: { sessionsDays: 1 }, nowMs: later(400) };
    expect((await removeExpired(scope, look)).sessions).toEqual([old]);
    go.open();
    await fixture.read(scope, turnId);
    expect(await listIds(scope)).toEqual([waiting, handedOver].toSorted());
  });

  it('removes uploads and what compaction took out by their own days, and says before how much that is', async () => {
    await using fixture = await TestTurns.start();
    await fixture.worker();
    const scope = await fixture.scope();
    const sessionId = await talk(fixture, 'ann');
    const uploads = [await saveUpload(scope), await saveUpload(scope)];
    const message = { id: 'old', turnId: 't_1', at: new Date().toISOString(), role: 'user', text: 'long ago', sent: 'long ago' } as const;
    await scope.sessions.appendHistory(sessionId, [{ kind: 'message', message: { ...message, attachments: [] } }]);
    // Of one file it is known when it was stored: a year ago.
    const past = new Date(Date.now() - 365 * DAY_MS);
    await utimes(join(scope.root, 'uploads', uploads[0] ?? ''), past, past);
    const rule = { uploadsDays: 90, historyDays: 30 };
    expect(await reportExpired(scope, rule)).toEqual({
      rule,
      sessions: { count: 0, examples: [] },
      history: { count: 0, bytes: 0 },
      uploads: { count: 1, bytes: onePixelPng.length },
      hasMore: false,
    });
    expect((await reportExpired(scope, rule, later(31))).history.count).toBe(1);
    expect(await scope.uploads.find(uploads[0] ?? '')).toBeDefined();
    await removeExpired(scope, { rule, nowMs: later(31) });
    expect(await Promise.all(uploads.map(async (id) => (await scope.uploads.find(id))?.id))).toEqual([undefined, uploads[1]]);
    expect((await readdir(join(scope.root, 'sessions'))).filter((name) => name.includes('history'))).toEqual([]);
    expect(await listIds(scope)).toEqual([sessionId]);
  });

  it('is that of each tenant: the cron service removes by it, and keeps everything of a tenant without one', async () => {
    await using fixture = await TestTurns.start();
    await fixture.worker();
    const scope = await fixture.scope();
    const sessionId = await talk(fixture, 'ann');
    const redis = connectRedis({ url: fixture.server.url, role: 'worker', log: silentLog });
    try {
      const { tenants } = fixture;
      const reconciler = new RetentionReconciler({ tenants, redis, log: silentLog, now: () => later(400) });
      await reconciler.removeAll();
      expect(await listIds(scope)).toEqual([sessionId]);
      await setRule(scope, { sessionsDays: 365 });
      await reconciler.removeAll();
      expect(await listIds(scope)).toEqual([]);
    } finally {
      redis.disconnect();
    }
  });
});
