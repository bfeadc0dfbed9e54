import { beforeEach, describe, expect, it } from '@jest/globals';
import type { Session } from '@concierge/contract';
import { deriveSessionId, type NewOutbound } from '@concierge/tenant';
import { FakeMeta, graphError } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';
import { DeliveryReceipts, keyOf, type DeliveryReceipt } from '@concierge/turn';
import { TestDeliveries } from './test-deliveries.ts';

let stage: TestDeliveries;

setUpEach(async (stack) => {
  stage = stack.use(await TestDeliveries.open());
});

describe('on WhatsApp', () => {
  const binding = { phoneNumberId: '1065', accessToken: 'meta-token', verifyToken: 'v', appSecret: 's' };
  const to = '4930123456';
  let meta: FakeMeta;

  beforeEach(async () => {
    meta = await new FakeMeta({ ...binding, pageId: '1', now: () => stage.nowMs }).start();
    stage.clearing.use(meta);
    stage.urls = { ...stage.urls, metaGraph: meta.url };
    await stage.connect('channel_a', binding);
  });

  const say = async (text: string, facts: Partial<NewOutbound> = {}): Promise<string> =>
    stage.say(text, { channel: 'channel_a', to, inboundAt: new Date(stage.nowMs).toISOString(), ...facts });

  it('nothing is tried when the contact has not written within a day', async () => {
    const id = await say('Hello', { inboundAt: new Date(stage.nowMs - 25 * 3_600_000).toISOString() });
    await stage.deliver(id);
    expect((await stage.delivery(id)).view()).toMatchObject({ state: 'withheld', problem: { code: 'window_closed' } });
    expect(meta.calls).toEqual([]);
  });

  it('a window that WhatsApp counts otherwise ends the message just so', async () => {
    const id = await say('Hello');
    await stage.deliver(id);
    expect((await stage.delivery(id)).view()).toMatchObject({ state: 'withheld', problem: { code: 'window_closed' } });
    expect(meta.sent).toHaveLength(1);
  });

  it('a template goes out whenever it is', async () => {
    const template = { name: 'parcel_here', language: 'en_US', variables: ['Ann'] };
    const { inboundAt: _, ...facts } = { inboundAt: '', template, kind: 'message' as const };
    const id = await stage.say('Your parcel is here, Ann.', { channel: 'channel_a', to, ...facts });
    await stage.deliver(id);
    expect((await stage.delivery(id)).state).toBe('sent');
    expect(meta.sent).toMatchObject([{ to, type: 'template', template: { name: 'parcel_here', language: { code: 'en_US' } } }]);
  });

  it('a limit between two holds their conversation alone', async () => {
    meta.personWrites(to);
    meta.failSends(graphError(131056, 'Pair rate limit hit'));
    const id = await say('Hello');
    expect(await stage.deliver(id)).toEqual({ kind: 'parked', untilMs: stage.nowMs + 4000 });
    expect(stage.held).toEqual([]);
  });

  it('receipts move a message forward, whatever order they come in, and find it by WhatsApp’s own id', async () => {
    meta.personWrites(to);
    const id = await say('Hello');
    await stage.deliver(id);
    const messageId = (await stage.delivery(id)).parts?.[0]?.providerMessageId ?? '';
    for (const state of ['read', 'delivered', 'sent', 'failed'] as const)
      await stage.receipts.note(stage.scope, 'channel_a', receipt({ messageId, state }));
    expect((await stage.delivery(id)).state).toBe('read');
    expect(stage.told).toEqual(['sent', 'read']);
  });

  it('a message whose answer never came is known to be sent, and read, by the mark that its receipts give back', async () => {
    meta.personWrites(to);
    meta.failSends('cut');
    const id = await say('Hello');
    await stage.deliver(id);
    expect((await stage.delivery(id)).state).toBe('unknown');
    const mark = String(meta.sent[0]?.['biz_opaque_callback_data']);
    await stage.receipts.note(stage.scope, 'channel_a', receipt({ messageId: 'wamid.ours', state: 'delivered', mark }));
    await stage.receipts.note(stage.scope, 'channel_a', receipt({ messageId: 'wamid.ours', state: 'read' }));
    expect((await stage.delivery(id)).fullView()).toMatchObject({
      state: 'read',
      problem: null,
      parts: [{ providerMessageId: 'wamid.ours' }],
    });
    expect(stage.told).toEqual(['unknown', 'delivered', 'read']);
  });

  it('marks of others, and of messages that never were, are none of ours', async () => {
    meta.personWrites(to);
    meta.failSends('cut');
    const id = await say('Hello');
    await stage.deliver(id);
    const telegramId = await stage.say('Hello');
    for (const mark of ['some data', `${id}.7`, `${id}.x`, `m_${'0'.repeat(32)}.0`, `${telegramId}.0`])
      await stage.receipts.note(stage.scope, 'channel_a', receipt({ messageId: `wamid.${mark}`, state: 'delivered', mark }));
    expect((await stage.delivery(id)).state).toBe('unknown');
    expect((await stage.delivery(telegramId)).state).toBe('waiting');
  });

  it('a receipt that comes before our own answer is not lost', async () => {
    meta.personWrites(to);
    meta.failSends({ body: { messaging_product: 'whatsapp', messages: [{ id: 'wamid.early' }] } });
    await stage.receipts.note(stage.scope, 'channel_a', receipt({ messageId: 'wamid.early', state: 'delivered' }));
    const id = await say('Hello');
    await stage.deliver(id);
    expect((await stage.delivery(id)).state).toBe('delivered');
  });

  it('receipts of messages that never were take little room, and none from others', async () => {
    const redis = stage.redis();
    const rest = 'x'.repeat(10_000);
    const other = await stage.tenants.create('other');
    await stage.receipts.note(other, 'channel_a', receipt({ messageId: 'wamid.other' }));
    for (let round = 0; round < 25; round += 1) {
      const names = Array.from({ length: 100 }, (_, index) => `wamid.${String(round)}.${String(index)}`);
      await Promise.all(
        names.map(async (name) =>
          stage.receipts.note(stage.scope, 'channel_a', receipt({ messageId: name + rest, state: 'failed', errorCodes: [rest, rest] })),
        ),
      );
    }
    expect(await redis.keys(`${keyOf.earlyReceipts('other')}/*`)).toHaveLength(1);
    const kept = await redis.keys(`${keyOf.earlyReceipts('acme')}/*`);
    expect(kept).toHaveLength(2000);
    expect(await countBytes(redis, kept[0])).toBeLessThan(1000);
    expect(await countBytes(redis, keyOf.earlyReceiptsOf('acme'))).toBeLessThan(500_000);
  });

  it('a repeated receipt is reported again: its first worker may have died before that', async () => {
    meta.personWrites(to);
    const id = await say('Hello');
    await stage.deliver(id);
    const messageId = (await stage.delivery(id)).parts?.[0]?.providerMessageId ?? '';
    const died = new DeliveryReceipts({
      redis: stage.redis(),
      onReported: async () => Promise.reject(new Error('it died')),
      now: () => stage.nowMs,
    });
    const delivered = receipt({ messageId, state: 'delivered' });
    await expect(died.note(stage.scope, 'channel_a', delivered)).rejects.toThrow('it died');
    await stage.receipts.note(stage.scope, 'channel_a', delivered);
    expect(stage.told).toEqual(['sent', 'delivered']);
  });

  it('one that failed after it was taken is a failure, which the owner can see', async () => {
    meta.personWrites(to);
    const id = await say('Hello');
    await stage.deliver(id);
    const messageId = (await stage.delivery(id)).parts?.[0]?.providerMessageId ?? '';
    await stage.receipts.note(stage.scope, 'channel_a', receipt({ messageId, state: 'failed', errorCodes: ['131026'] }));
    expect((await stage.delivery(id)).view()).toMatchObject({ state: 'failed', problem: { code: '131026' } });
    expect((await stage.scope.channels.find('channel_a'))?.lastError).toMatchObject({ code: '131026' });
    expect(stage.told).toEqual(['sent', 'failed']);
  });
});

describe('on Messenger', () => {
  it('a mark that bears the time of a message means that one, too, although its answer took a while', async () => {
    const settings = { pageId: '4042', accessToken: 'meta-token', verifyToken: 'v', appSecret: 's' };
    let takenAtMs = 0;
    const now = (): number => {
      takenAtMs = stage.nowMs;
      stage.nowMs += 300;
      return takenAtMs;
    };
    const meta = await new FakeMeta({ ...settings, phoneNumberId: '1', now }).start();
    stage.clearing.use(meta);
    stage.urls = { ...stage.urls, metaGraph: meta.url };
    await stage.connect('channel_b', settings);
    meta.personWrites('777');
    const id = await stage.say('one', { channel: 'channel_b', to: '777', inboundAt: new Date(stage.nowMs).toISOString() });
    await stage.deliver(id);
    expect((await stage.delivery(id)).state).toBe('sent');
    await stage.receipts.note(stage.scope, 'channel_b', receipt({ messageId: null, recipient: '777', upToMs: takenAtMs, state: 'read' }));
    expect((await stage.delivery(id)).state).toBe('read');
  });

  it.each([
    ['the page', '4042', 1],
    ['the Instagram account beside it', '4043', 2],
  ])('who writes to %s has the limit of that', async (_what, account, parts) => {
    const settings = { pageId: '4042', instagramId: '4043', accessToken: 'meta-token', verifyToken: 'v', appSecret: 's' };
    const meta = await new FakeMeta({ ...settings, phoneNumberId: '1', now: () => stage.nowMs }).start();
    stage.clearing.use(meta);
    stage.urls = { ...stage.urls, metaGraph: meta.url };
    await stage.connect('channel_b', settings);
    meta.personWrites('777');
    if (account === settings.instagramId) meta.personWritesOnInstagram('777');
    const sessionId = deriveSessionId('cs', 'channel_b', '777');
    await stage.scope.sessions.publish({ ...emptySession(sessionId), channelAddress: { to: '777', thread: null, account } });
    const text = 'word '.repeat(380).trim();
    const id = await stage.say(text, { channel: 'channel_b', to: '777', sessionId, inboundAt: new Date(stage.nowMs).toISOString() });
    await stage.deliver(id);
    expect((await stage.delivery(id)).state).toBe('sent');
    expect(meta.sent).toHaveLength(parts);
  });

  it('a mark states up to when all was read', async () => {
    const settings = { pageId: '4042', accessToken: 'meta-token', verifyToken: 'v', appSecret: 's' };
    const meta = await new FakeMeta({ ...settings, phoneNumberId: '1', now: () => stage.nowMs }).start();
    stage.clearing.use(meta);
    stage.urls = { ...stage.urls, metaGraph: meta.url };
    await stage.connect('channel_b', settings);
    meta.personWrites('777');
    const ids: string[] = [];
    for (const text of ['one', 'two', 'three']) {
      ids.push(await stage.say(text, { channel: 'channel_b', to: '777', inboundAt: new Date(stage.nowMs).toISOString() }));
      await stage.deliver(ids.at(-1) ?? '');
      stage.nowMs += 60_000;
    }
    const upToMs = stage.nowMs - 90_000;
    await stage.receipts.note(stage.scope, 'channel_b', receipt({ messageId: null, recipient: '777', upToMs, state: 'read' }));
    expect(await Promise.all(ids.map(async (id) => (await stage.delivery(id)).state))).toEqual(['read', 'read', 'sent']);
  });
});

async function countBytes(redis: ReturnType<TestDeliveries['redis']>, key = ''): Promise<number | null> {
  return redis.memory('USAGE', key);
}

function receipt(facts: Partial<DeliveryReceipt>): DeliveryReceipt {
  return { messageId: null, recipient: null, upToMs: null, state: 'delivered', errorCodes: [], ...facts };
}

function emptySession(id: string): Session {
  const at = new Date().toISOString();
  const counts = { messageCount: 0, summary: null, messages: [], turns: [], contextTokens: null };
  return {
    version: 1,
    id,
    agent: 'cs',
    channel: 'channel_b',
    sender: '777',
    revision: 1,
    createdAt: at,
    updatedAt: at,
    title: 'x',
    ...counts,
  };
}
