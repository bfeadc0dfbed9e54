import { DAY_MS, HOUR_MS } from '@concierge/contract';
import { readdir, readFile, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { FolderSync } from '@concierge/files';
import { TenantEvents, type WebhookEventInput } from '../src/events/tenant-events.ts';
import { TenantSecrets } from '../src/tenant-secrets.ts';
import { silentLog, temporaryFolder, type Folder } from './support.ts';

let folder: Folder;
let nowMs: number;
let events: TenantEvents;

beforeEach(async () => {
  folder = await temporaryFolder();
  nowMs = Date.parse('2026-11-21T20:00:00Z');
  events = open('a key for secrets');
});
afterEach(async () => folder[Symbol.asyncDispose]());

function open(secretsKey: string): TenantEvents {
  const secrets = new TenantSecrets('acme', secretsKey);
  const place = { tenantId: 'acme', folder: join(folder.path, 'events'), folders: new FolderSync(), log: silentLog };
  return new TenantEvents({ ...place, secrets, now: () => nowMs });
}

function missed(key: string, at = new Date(nowMs).toISOString()): WebhookEventInput<'schedule.missed'> {
  const run = { scheduleId: 's', name: 'Report', runId: key, scheduledAt: at, missedSince: null, reason: null };
  return { type: 'schedule.missed', key, at, data: run };
}

async function settle(id: string, outcome: 'sent' | 'dead'): Promise<void> {
  const event = await events.files.waiting(id);
  if (event === undefined) throw new Error('does not wait');
  await events.files.settle({ ...event, outcome, reason: null });
}

describe('event endpoints', () => {
  it('show their secret once, and keep it sealed', async () => {
    const { secret, ...made } = await events.endpoints.create({ url: 'https://example.com/hook' });
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/u);
    expect(await events.endpoints.list()).toEqual([made]);
    const text = await readFile(join(folder.path, 'events', 'endpoints', `${made.id}.json`), 'utf8');
    expect(text).not.toContain(secret.slice('whsec_'.length));
    expect((await events.endpoints.open(made.id)).secrets).toEqual([secret]);
  });

  it('sign with the old secret for a day after a new one was made, and no longer', async () => {
    const { id, secret: old } = await events.endpoints.create({ url: 'https://example.com/hook' });
    const { secret } = await events.endpoints.rotateSecret(id);
    nowMs += 23 * HOUR_MS;
    expect((await events.endpoints.open(id)).secrets).toEqual([secret, old]);
    nowMs += 2 * HOUR_MS;
    expect((await events.endpoints.open(id)).secrets).toEqual([secret]);
  });

  it('are disabled when no try has succeeded for five days, with the reason', async () => {
    const { id } = await events.endpoints.create({ url: 'https://example.com/hook' });
    expect(await events.endpoints.noteFailure(id, { isGone: false })).toBe(false);
    nowMs += 4 * DAY_MS;
    await events.endpoints.noteSuccess(id);
    expect(await events.endpoints.noteFailure(id, { isGone: false })).toBe(false);
    nowMs += 5 * DAY_MS - 1;
    expect(await events.endpoints.noteFailure(id, { isGone: false })).toBe(false);
    expect(await events.endpoints.get(id)).toMatchObject({ state: 'enabled', failingSince: '2026-11-25T20:00:00.000Z' });
    nowMs += 1;
    expect(await events.endpoints.noteFailure(id, { isGone: false })).toBe(true);
    const { state, reason } = await events.endpoints.get(id);
    expect([state, reason]).toEqual(['disabled', expect.stringContaining('since 2026-11-25T20:00:00.000Z, for 5 days')]);
    expect(await events.emit(missed('r1'))).toEqual([]);
    await events.endpoints.update(id, { enabled: true });
    expect(await events.endpoints.get(id)).toMatchObject({ state: 'enabled', failingSince: null });
    expect(await events.emit(missed('r1'))).toHaveLength(1);
  });

  it('whose secret cannot be opened here report it, and work again with a new one', async () => {
    const { id } = await events.endpoints.create({ url: 'https://example.com/hook' });
    const elsewhere = open('another key for secrets');
    expect(await elsewhere.endpoints.get(id)).toMatchObject({ state: 'broken' });
    await expect(elsewhere.endpoints.open(id)).rejects.toThrow('give it a new one');
    expect(await elsewhere.endpoints.blockedReason(id)).toContain('cannot be read');
    const { secret } = await elsewhere.endpoints.rotateSecret(id);
    expect((await elsewhere.endpoints.open(id)).secrets).toEqual([secret]);
  });

  it('refuse addresses with credentials, other protocols, and more than there may be', async () => {
    for (const url of ['ftp://example.com/', 'https://user:pass@example.com/', 'nonsense'])
      await expect(events.endpoints.create({ url })).rejects.toMatchObject({ code: 'invalid_request' });
    for (let made = 0; made < 20; made += 1) await events.endpoints.create({ url: 'https://example.com/hook' });
    await expect(events.endpoints.create({ url: 'https://example.com/hook' })).rejects.toMatchObject({ code: 'conflict' });
  });

  it('are made for the URL of a schedule where there is none, and get no other events', async () => {
    await events.endpoints.ensure('https://example.com/report');
    await events.endpoints.ensure('https://example.com/report');
    expect(await events.endpoints.list()).toMatchObject([{ url: 'https://example.com/report', types: [], state: 'enabled' }]);
    expect(await events.emit(missed('r1'))).toEqual([]);
    expect(await events.emitTo('https://example.com/report', missed('r1'))).toMatchObject({ dueMs: nowMs });
    await expect(events.emitTo('https://example.com/other', missed('r1'))).rejects.toMatchObject({ code: 'conflict' });
  });
});

describe('events', () => {
  it('are listed newest first, page by page, by endpoint, type and what has become of them', async () => {
    const [a, b] = [
      await events.endpoints.create({ url: 'https://a.example/' }),
      await events.endpoints.create({ url: 'https://b.example/' }),
    ];
    const ids: string[] = [];
    for (let hour = 0; hour < 5; hour += 1) {
      for (const { id } of await events.emit(missed(`r${String(hour)}`))) ids.push(id);
      nowMs += HOUR_MS;
    }
    for (const id of ids.slice(0, 4)) await settle(id, 'sent');
    await settle(ids[4] ?? '', 'dead');
    const newest = ids.toSorted().toReversed();
    const first = await events.list({ limit: 7 });
    expect(first.items.map(({ id }) => id)).toEqual(newest.slice(0, 7));
    const second = await events.list({ limit: 7, cursor: first.nextCursor ?? '' });
    expect(second.items.map(({ id }) => id)).toEqual(newest.slice(7));
    expect(second.nextCursor).toBeNull();
    expect((await events.list({ limit: 100, status: 'sent' })).items).toHaveLength(4);
    expect(
      (await events.list({ limit: 100, status: 'dead', endpoint: a.id })).items.length +
        (await events.list({ limit: 100, status: 'dead', endpoint: b.id })).items.length,
    ).toBe(1);
    expect((await events.list({ limit: 100, endpoint: b.id })).items.map(({ endpointId }) => endpointId)).toEqual(
      Array.from({ length: 5 }, () => b.id),
    );
    expect((await events.list({ limit: 100, type: 'turn.failed' })).items).toEqual([]);
    await expect(events.list({ limit: 1, cursor: '../../tenant' })).rejects.toMatchObject({ code: 'invalid_request' });
  });

  it('are kept a week once sent and thirty days as dead letters; what was sent anew counts from then', async () => {
    await events.endpoints.create({ url: 'https://a.example/' });
    const [sent] = await events.emit(missed('sent'));
    const [late] = await events.emit(missed('late'));
    const [dead] = await events.emit(missed('dead'));
    const [waiting] = await events.emit(missed('waiting'));
    await settle(sent?.id ?? '', 'sent');
    await settle(late?.id ?? '', 'sent');
    await settle(dead?.id ?? '', 'dead');
    const touch = async (status: string, id: string | undefined, atMs: number): Promise<void> =>
      utimes(join(folder.path, 'events', status, '2026-11-21T20', `${id ?? ''}.json`), atMs / 1000, atMs / 1000);
    await touch('sent', sent?.id, nowMs);
    await touch('sent', late?.id, nowMs + 3 * DAY_MS);
    await touch('dead', dead?.id, nowMs);
    const remaining = async (): Promise<string[]> =>
      (await events.list({ limit: 100 })).items.map(({ data }) => String(data['runId'])).toSorted();
    nowMs += 8 * DAY_MS;
    await events.sweep();
    expect(await remaining()).toEqual(['dead', 'late', 'waiting']);
    nowMs += 23 * DAY_MS;
    await events.sweep();
    expect(await remaining()).toEqual(['waiting']);
    expect(await readdir(join(folder.path, 'events', 'sent'))).toEqual([]);
    expect(await events.files.waitingIds()).toEqual([waiting?.id]);
  });

  it('that were settled by a process that died before the move are moved, not shown twice', async () => {
    await events.endpoints.create({ url: 'https://a.example/' });
    const [kept] = await events.emit(missed('r1'));
    const event = await events.files.waiting(kept?.id ?? '');
    if (event === undefined) throw new Error('does not wait');
    await events.files.put({ ...event, outcome: 'sent' });
    expect(await events.get(event.id)).toMatchObject({ status: 'waiting' });
    await events.files.finishMove(event.id, 'sent');
    expect((await events.list({ limit: 10 })).items).toMatchObject([{ id: event.id, status: 'sent' }]);
    expect(await events.emit(missed('r1'))).toMatchObject([{ id: event.id }]);
    expect((await events.list({ limit: 10 })).items).toHaveLength(1);
  });

  it.each(['waiting', 'sent', 'dead'] as const)('that were erased while they were being sent do not come back as %s', async (outcome) => {
    await events.endpoints.create({ url: 'https://a.example/' });
    const [kept] = await events.emit(missed('r1'));
    const event = await events.files.waiting(kept?.id ?? '');
    if (event === undefined) throw new Error('does not wait');
    expect(await events.files.erase(({ id }) => id === event.id)).toBe(1);
    if (outcome === 'waiting') await events.files.put({ ...event, tries: 1 });
    else await events.files.settle({ ...event, tries: 1, outcome, reason: null });
    expect((await events.list({ limit: 10 })).items).toEqual([]);
    expect(await events.files.waitingIds()).toEqual([]);
  });

  it('that were kept once more while they were moved have been sent, and do not wait', async () => {
    const { id: endpointId } = await events.endpoints.create({ url: 'https://example.com/hook' });
    const [kept] = await events.emit(missed('r1'));
    const id = kept?.id ?? '';
    const waiting = join(folder.path, 'events', 'waiting', '2026-11-21T20');
    const text = await readFile(join(waiting, `${id}.json`), 'utf8');
    await settle(id, 'sent');
    // A process that looked before the move, and writes after it.
    await writeFile(join(waiting, `${id}.json`), text);
    expect(await events.files.waiting(id)).toBeUndefined();
    expect(await readdir(waiting)).toEqual([]);
    expect((await events.list({ endpoint: endpointId, limit: 10 })).items.map(({ status }) => status)).toEqual(['sent']);
  });

  it('wait again when all dead letters of an endpoint since a time are sent anew', async () => {
    const { id: endpointId } = await events.endpoints.create({ url: 'https://a.example/' });
    const ids: string[] = [];
    for (const day of [0, 1, 2]) {
      const [kept] = await events.emit(missed(`r${String(day)}`));
      ids.push(kept?.id ?? '');
      await settle(kept?.id ?? '', 'dead');
      nowMs += DAY_MS;
    }
    const { events: revived, more } = await events.redriveAll(endpointId, nowMs - 2 * DAY_MS - HOUR_MS);
    expect([revived.map(({ id }) => id), more]).toEqual([ids.slice(1), false]);
    expect(await events.files.waitingIds()).toEqual(ids.slice(1));
    await expect(events.redrive(ids[1] ?? '')).rejects.toMatchObject({ code: 'conflict' });
    await expect(events.redriveAll('ep_000000000000', 0)).rejects.toMatchObject({ code: 'not_found' });
  });
});
