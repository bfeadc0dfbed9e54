import { readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DAY_MS, limits, type DeliveryStep } from '@concierge/contract';
import { FolderSync } from '@concierge/files';
import { armFailpoints } from '@concierge/runtime';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Outbox, type NewOutbound, type Delivery } from '../src/index.ts';
import { silentLog, startTenants, type TestTenants } from './support.ts';

const outbound: NewOutbound = {
  kind: 'message',
  channel: 'channel_a',
  to: '4242',
  sessionId: '0123456789abcdef0123456789abcdef',
  text: 'Your parcel is here.',
  agent: 'admin',
  turnId: 't_1',
  callId: 'c1',
};
const operator = { kind: 'operator' } as const;

let fixture: TestTenants;
let folder: string;
let nowMs: number;
let outbox: Outbox;

/** As another process has it. */
function another(): Outbox {
  return new Outbox({ tenantId: 'acme', folder, folders: new FolderSync(), log: silentLog, now: () => nowMs });
}

beforeEach(async () => {
  fixture = await startTenants();
  folder = join(fixture.dataDir, 'tenants', 'acme', 'outbox');
  await fixture.tenants.create('acme');
  nowMs = Date.parse('2026-11-21T12:00:00.000Z');
  outbox = another();
});
afterEach(async () => fixture[Symbol.asyncDispose]());

async function accept(changes: Partial<NewOutbound> = {}): Promise<string> {
  return (await outbox.accept({ ...outbound, ...changes })).message.id;
}

async function get(id: string): Promise<Delivery> {
  const delivery = await another().delivery(id);
  if (delivery === undefined) throw new Error('it is gone');
  return delivery;
}

const at = (): string => new Date(nowMs).toISOString();
const parts = (...texts: string[]): DeliveryStep => ({ kind: 'parts', at: at(), parts: texts.map((text) => ({ text, plain: text })) });
const result = (outcome: 'sent' | 'unknown' | 'refused' | 'retry', facts: object = {}): DeliveryStep => ({
  kind: 'result',
  at: at(),
  part: 0,
  try: 1,
  outcome,
  ...facts,
});

async function settled(changes: Partial<NewOutbound> = {}, facts: object = {}): Promise<string> {
  const id = await accept(changes);
  await outbox.record(id, [parts('Hello')]);
  await outbox.claim(await get(id), { part: 0, try: 1 });
  await outbox.record(id, [result('sent', facts)]);
  await outbox.end(await get(id));
  return id;
}

describe('a message that is accepted', () => {
  it('is on disk even when the process fails right after, and is one, also when another process repeats the call', async () => {
    armFailpoints('outbox.after-file:throw');
    await expect(accept()).rejects.toThrow('fail point');
    const accepted = await Promise.all([outbox, another(), another()].map(async (one) => one.accept(outbound)));
    expect(accepted.map(({ isNew }) => isNew)).toEqual([false, false, false]);
    expect(await outbox.waiting()).toHaveLength(1);
  });

  it('keeps its place behind those to the same conversation, and stands in no other’s way', async () => {
    const ids = [await accept(), await accept({ callId: 'c2' }), await accept({ callId: 'c3', to: '7777' })];
    const lanes = ids.map((id) => id.slice(2, 14));
    expect(lanes[0]).toBe(lanes[1]);
    expect(await outbox.lanes()).toEqual([...new Set(lanes)].toSorted());
    expect((await outbox.head(lanes[0] ?? ''))?.message.id).toBe(ids[0]);
    expect((await outbox.head(lanes[2] ?? ''))?.message.id).toBe(ids[2]);
    expect((await outbox.waiting()).map(({ id }) => id)).toEqual(ids);
  });

  it('keeps its place also when the clock of the next acceptor is behind', async () => {
    const reply = await accept({ kind: 'reply' });
    nowMs -= 5000;
    const { message } = await another().accept({ ...outbound, kind: 'answer', callId: 'answer' });
    expect((await outbox.waiting()).map(({ id }) => id)).toEqual([reply, message.id]);
  });

  it('is still known when it was sent, so that the same call made again is not sent again', async () => {
    await settled();
    expect((await another().accept(outbound)).isNew).toBe(false);
    expect(await outbox.waiting()).toEqual([]);
    expect(await outbox.lanes()).toEqual([]);
  });

  it('is refused to agents when too many wait, and never for an answer', async () => {
    const { message } = await outbox.accept(outbound);
    const lane = message.id.slice(2, 14);
    const ids = Array.from({ length: limits.outboxMaxWaiting }, (_, index) => `m_${lane}${index.toString(16).padStart(20, '0')}`);
    for (const id of ids) await writeFile(join(folder, lane, `${id}.json`), JSON.stringify({ ...message, id }));
    await expect(accept({ callId: 'c2' })).rejects.toMatchObject({ code: 'too_many_waiting' });
    await expect(accept({ callId: 'c2', kind: 'reply' })).rejects.toMatchObject({ code: 'too_many_waiting' });
    expect((await outbox.accept({ ...outbound, kind: 'answer', callId: 'answer' })).isNew).toBe(true);
    for (const id of ids) await writeFile(join(folder, lane, `${id}.json`), JSON.stringify({ ...message, id, kind: 'answer' }));
    expect((await outbox.accept({ ...outbound, callId: 'c2' })).isNew).toBe(true);
  });

  it('that a damaged disk has spoilt is set aside, and does not stop the others', async () => {
    const broken = await accept();
    const whole = await accept({ callId: 'c2' });
    await writeFile(join(folder, broken.slice(2, 14), `${broken}.json`), '{"version":1,');
    expect((await outbox.head(broken.slice(2, 14)))?.message.id).toBe(whole);
    expect(await readdir(folder)).toContain(`${broken}.json.broken`);
  });
});

describe('a try', () => {
  it('is begun by one of many', async () => {
    const delivery = await get(await accept());
    const claims = await Promise.all(Array.from({ length: 8 }, async () => another().claim(delivery, { part: 0, try: 1 })));
    expect(claims.filter(Boolean)).toHaveLength(1);
  });

  it('cannot be begun by a worker that was frozen while the message was sent, nor after it was taken up again', async () => {
    const id = await accept();
    const asleep = await get(id);
    await outbox.record(id, [parts('Hello')]);
    await outbox.claim(await get(id), { part: 0, try: 1 });
    await outbox.record(id, [result('refused', { problem: { code: '400', message: 'No.' } })]);
    await outbox.end(await get(id));
    expect(await outbox.claim(asleep, { part: 0, try: 1 })).toBe(false);
    await outbox.redrive(id, operator);
    expect(await outbox.claim(asleep, { part: 0, try: 1 })).toBe(false);
    expect((await get(id)).next).toMatchObject({ index: 0, part: { tries: 1, attempts: 0 } });
  });

  it('that has no result is open for every reader', async () => {
    const id = await accept();
    await outbox.record(id, [parts('Hello')]);
    await outbox.claim(await get(id), { part: 0, try: 1 });
    expect((await get(id)).openTries).toEqual([{ part: 0, try: 1 }]);
  });

  it('whose result is reported late is sent after all, wherever the message is by then', async () => {
    const id = await accept();
    await outbox.record(id, [parts('Hello')]);
    await outbox.claim(await get(id), { part: 0, try: 1 });
    await outbox.record(id, [result('unknown', { problem: { code: 'interrupted', message: '?' } })]);
    await outbox.end(await get(id));
    expect((await get(id)).state).toBe('unknown');
    await another().record(id, [result('sent', { providerMessageId: 'wamid.1' })]);
    expect((await get(id)).state).toBe('sent');
    expect(await outbox.findSent('channel_a', 'wamid.1')).toEqual({ messageId: id, part: 0 });
  });
});

describe('a message that has ended', () => {
  it('is one file, also after a crash while it is put there', async () => {
    const id = await accept();
    await outbox.record(id, [parts('Hello'), result('sent')]);
    const delivery = await get(id);
    await outbox.end(delivery);
    // Another one that had begun to do the same.
    await another().end(delivery);
    expect(await readdir(folder)).toEqual(['settled', 'turns']);
    expect(await readdir(join(folder, 'settled', '2026-11-21'))).toEqual([`${id}.jsonl`]);
    expect((await get(id)).view()).toMatchObject({ id, state: 'sent' });
  });

  it('is taken up once by several who ask at once, for what has not arrived', async () => {
    const id = await accept();
    await outbox.record(id, [
      parts('one', 'two'),
      result('sent'),
      result('refused', { part: 1, problem: { code: '400', message: 'No.' } }),
    ]);
    await outbox.end(await get(id));
    nowMs += DAY_MS;
    const asked = await Promise.allSettled([another(), another(), another()].map(async (one) => one.redrive(id, operator)));
    expect(asked.some(({ status }) => status === 'fulfilled')).toBe(true);
    const delivery = await get(id);
    expect(delivery.next).toMatchObject({ index: 1, part: { text: 'two' } });
    expect(delivery.expiresAtMs).toBe(nowMs + limits.outboxTtlSeconds * 1000);
    expect(await outbox.waiting()).toHaveLength(1);
    expect(await outbox.dead()).toEqual([]);
  });

  it('is not taken up while it still stands in its lane: the process that ends it is about to put it away', async () => {
    const id = await accept();
    await outbox.record(id, [parts('Hello'), result('refused', { problem: { code: '400', message: 'No.' } })]);
    await expect(outbox.redrive(id, operator)).rejects.toMatchObject({ code: 'conflict' });
    await outbox.end(await get(id));
    expect((await outbox.redrive(id, operator)).state).toBe('waiting');
  });

  it('stays on its way once it was taken up, when a frozen worker wants to put it away', async () => {
    const id = await accept();
    await outbox.record(id, [parts('Hello'), result('refused', { problem: { code: '400', message: 'No.' } })]);
    const asleep = await get(id);
    await outbox.end(asleep);
    await outbox.redrive(id, operator);
    await another().end(asleep);
    expect((await get(id)).state).toBe('waiting');
    expect(await outbox.waiting()).toHaveLength(1);
  });

  it('is found again when the process that took it up died in the middle', async () => {
    const id = await accept();
    await outbox.record(id, [parts('Hello'), result('refused', { problem: { code: '400', message: 'No.' } })]);
    await outbox.end(await get(id));
    await outbox.redrive(id, operator);
    // As it is after the journal is back, and before the message is.
    await rm(join(folder, id.slice(2, 14), `${id}.json`));
    expect(await outbox.waiting()).toEqual([]);
    await another().sweep();
    expect((await outbox.head(id.slice(2, 14)))?.next).toMatchObject({ index: 0, part: { tries: 1 } });
  });

  it('is not taken up when it has arrived, is on its way, or never was', async () => {
    await expect(outbox.redrive(await settled(), operator)).rejects.toMatchObject({ code: 'conflict' });
    await expect(outbox.redrive(await accept({ callId: 'c2' }), operator)).rejects.toMatchObject({ code: 'conflict' });
    await expect(outbox.redrive(`m_${'0'.repeat(32)}`, operator)).rejects.toMatchObject({ code: 'not_found' });
  });

  it('is forgotten after a while, and what leads to it', async () => {
    const id = await settled({}, { providerMessageId: 'wamid.1' });
    const refused = await accept({ callId: 'c2' });
    await outbox.record(refused, [parts('Hello'), result('refused', { problem: { code: '400', message: 'No.' } })]);
    await outbox.end(await get(refused));
    nowMs += (limits.outboxKeptDays - 1) * DAY_MS;
    await outbox.forget();
    expect((await get(id)).state).toBe('sent');
    expect((await get(refused)).state).toBe('failed');
    nowMs += 2 * DAY_MS;
    await outbox.forget();
    expect(await outbox.delivery(id)).toBeUndefined();
    expect(await outbox.delivery(refused)).toBeUndefined();
  });
});

describe('what a provider reports', () => {
  it('moves a message forward only, in whatever order it comes', async () => {
    const id = await settled();
    const receipt = (state: 'sent' | 'delivered' | 'read' | 'failed'): DeliveryStep => ({ kind: 'receipt', at: at(), part: 0, state });
    await outbox.record(id, [receipt('read')]);
    await Promise.all([
      another().record(id, [receipt('delivered')]),
      another().record(id, [receipt('sent')]),
      another().record(id, [receipt('failed')]),
    ]);
    expect((await get(id)).state).toBe('read');
  });

  it('may be that it failed after all: then it is among those to be looked at, and can be sent again', async () => {
    const id = await settled();
    await outbox.record(id, [
      { kind: 'receipt', at: at(), part: 0, state: 'failed', problem: { code: '131026', message: 'Undeliverable.' } },
    ]);
    expect((await outbox.dead()).map((delivery) => delivery.view())).toMatchObject([{ id, state: 'failed', problem: { code: '131026' } }]);
    await outbox.redrive(id, operator);
    expect((await get(id)).next?.index).toBe(0);
  });
});

it('a turn leads to its messages', async () => {
  const ids = [await settled(), await accept({ callId: 'answer', kind: 'answer' })];
  await accept({ turnId: 't_2' });
  expect((await outbox.ofTurn('t_1')).map(({ message }) => message.id)).toEqual(ids);
});
