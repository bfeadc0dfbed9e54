import { beforeEach, describe, expect, it } from '@jest/globals';
import type { Session } from '@concierge/contract';
import { deriveSessionId, type NewOutbound } from '@concierge/tenant';
import { FakeMeta, graphError } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';
import { DeliveryReceipts, keyOf, type DeliveryReceipt } from '@concierge/turn';
import { TestDeliveries } from './test-deliveries.ts';

let fixture: TestDeliveries;

setUpEach(async (stack) => {
  fixture = stack.use(await TestDeliveries.open());
});

describe('on WhatsApp', () => {
  const binding = { phoneNumberId: '1065', accessToken: 'meta-token', verifyToken: 'v', appSecret: 's' };
  const to = '4930123456';
  let meta: FakeMeta;

  beforeEach(async () => {
    meta = await new FakeMeta({ ...binding, pageId: '1', now: () => fixture.nowMs }).start();
    fixture.clearing.use(meta);
    fixture.urls = { ...fixture.urls, metaGraph: meta.url };
    await fixture.connect('channel_a', binding);
  });

  const say = async (text: string, facts: Partial<NewOutbound> = {}): Promise<string> =>
    fixture.say(text, { channel: 'channel_a', to, inboundAt: new Date(fixture.nowMs).toISOString(), ...facts });

  it('nothing is tried when the contact has not written within a day', async () => {
    const id = await say('Hello', { inboundAt: new Date(fixture.nowMs - 25 * 3_600_000).toISOString() });
    await fixture.deliver(id);
    expect((await fixture.delivery(id)).view()).toMatchObject({ state: 'withheld', problem: { code: 'window_closed' } });
    expect(meta.calls).toEqual([]);
  });

  it('a window that WhatsApp counts otherwise ends the message just so', async () => {
    const id = await say('Hello');
    await fixture.deliver(id);
    expect((await fixture.delivery(id)).view()).toMatchObject({ state: 'withheld', problem: { code: 'window_closed' } });
    expect(meta.sent).toHaveLength(1);
  });

  it('a template goes out whenever it is', async () => {
    const template = { name: 'parcel_here', language: 'en_US', variables: ['Ann'] };
    const { inboundAt: _, ...facts } = { inboundAt: '', template, kind: 'message' as const };
    const id = await fixture.say('Your parcel is here, Ann.', { channel: 'channel_a', to, ...facts });
    await fixture.deliver(id);
    expect((await fixture.delivery(id)).state).toBe('sent');
    expect(meta.sent).toMatchObject([{ to, type: 'template', template: { name: 'parcel_here', language: { code: 'en_US' } } }]);
  });

  it('a limit between two holds their conversation alone', async () => {
    meta.personWrites(to);
    meta.failSends(graphError(131056, 'Pair rate limit hit'));
    const id = await say('Hello');
    expect(await fixture.deliver(id)).toEqual({ kind: 'parked', untilMs: fixture.nowMs + 4000 });
    expect(fixture.held).toEqual([]);
  });

  it('receipts move a message forward, whatever order they come in, and find it by WhatsApp’s own id', async () => {
    meta.personWrites(to);
    const id = await say('Hello');
    await fixture.deliver(id);
    const messageId = (await fixture.delivery(id)).parts?.[0]?.providerMessageId ?? '';
    for (const state of ['read', 'delivered', 'sent', 'failed'] as const)
      await fixture.receipts.note(fixture.scope, 'channel_a', receipt({ messageId, state }));
    expect((await fixture.delivery(id)).state).toBe('read');
    expect(fixture.reported).toEqual(['sent', 'read']);
  });

  it('a message whose answer never came is known to be sent, and read, by the reference that its receipts give back', async () => {
    meta.personWrites(to);
    meta.failSends('cut');
    const id = await say('Hello');
    await fixture.deliver(id);
    expect((await fixture.delivery(id)).state).toBe('unknown');
    const reference = String(meta.sent[0]?.['biz_opaque_callback_data']);
    await fixture.receipts.note(fixture.scope, 'channel_a', receipt({ messageId: 'wamid.ours', state: 'delivered', reference }));
    await fixture.receipts.note(fixture.scope, 'channel_a', receipt({ messageId: 'wamid.ours', state: 'read' }));
    expect((await fixture.delivery(id)).fullView()).toMatchObject({
      state: 'read',
      problem: null,
      parts: [{ providerMessageId: 'wamid.ours' }],
    });
    expect(fixture.reported).toEqual(['unknown', 'delivered', 'read']);
  });

  it('marks of others, and of messages that never were, are none of ours', async () => {
    meta.personWrites(to);
    meta.failSends('cut');
    const id = await say('Hello');
    await fixture.deliver(id);
    const telegramId = await fixture.say('Hello');
    for (const reference of ['some data', `${id}.7`, `${id}.x`, `m_${'0'.repeat(32)}.0`, `${telegramId}.0`])
      await fixture.receipts.note(fixture.scope, 'channel_a', receipt({ messageId: `wamid.${reference}`, state: 'delivered', reference }));
    expect((await fixture.delivery(id)).state).toBe('unknown');
    expect((await fixture.delivery(telegramId)).state).toBe('waiting');
  });

  it('a receipt that comes before our own answer is not lost', async () => {
    meta.personWrites(to);
    meta.failSends({ body: { messaging_product: 'whatsapp', messages: [{ id: 'wamid.early' }] } });
    await fixture.receipts.note(fixture.scope, 'channel_a', receipt({ messageId: 'wamid.early', state: 'delivered' }));
    const id = await say('Hello');
    await fixture.deliver(id);
    expect((await fixture.delivery(id)).state).toBe('delivered');
  });

  it('receipts of messages that never were take little room, and none from others', async () => {
    const redis = fixture.redis();
    const rest = 'x'.repeat(10_000);
    const other = await fixture.tenants.create('other');
    await fixture.receipts.note(other, 'channel_a', receipt({ messageId: 'wamid.other' }));
    for (let round = 0; round < 25; round += 1) {
      const names = Array.from({ length: 100 }, (_, index) => `wamid.${String(round)}.${String(index)}`);
      await Promise.all(
        names.map(async (name) =>
          fixture.receipts.note(fixture.scope, 'channel_a', receipt({ messageId: name + rest, state: 'failed', errorCodes: [rest, rest] })),
        ),
      );
    }
    expect(await redis.keys(`${keyOf.earlyReceipts('other')}/*`)).toHaveLength(1);
    const kept = await redis.keys(`${keyOf.earlyReceipts('acme')}/*`);
    expect(kept).toHaveLength(2000);
    expect(await countBytes(redis, kept[0])).toBeLessThan(1000);
    expect(await countBytes(redis, keyOf.earlyReceiptsOf('acme'))).toBeLessThan(500_000);
  });

  it('a repeated receipt of a try that failed does not end the message once it is sent again', async () => {
    meta.personWrites(to);
    const id = await say('Hello');
    await fixture.deliver(id);
    const messageId = (await fixture.delivery(id)).parts?.[0]?.providerMessageId ?? '';
    const noteFailure = async (): Promise<void> =>
      fixture.receipts.note(fixture.scope, 'channel_a', receipt({ messageId, state: 'failed', errorCodes: ['131026'] }));
    await noteFailure();
    expect((await fixture.delivery(id)).state).toBe('failed');
    await fixture.scope.outbox.redrive(id, { kind: 'operator' });
    await noteFailure();
    await fixture.deliver(id);
    await noteFailure();
    expect((await fixture.delivery(id)).state).toBe('sent');
    expect(meta.sent).toHaveLength(2);
  });

  it('a repeated receipt is reported again: its first worker may have died before that', async () => {
    meta.personWrites(to);
    const id = await say('Hello');
    await fixture.deliver(id);
    const messageId = (await fixture.delivery(id)).parts?.[0]?.providerMessageId ?? '';
    const died = new DeliveryReceipts({
      redis: fixture.redis(),
      onReported: async () => Promise.reject(new Error('it died')),
      now: () => fixture.nowMs,
    });
    const delivered = receipt({ messageId, state: 'delivered' });
    await expect(died.note(fixture.scope, 'channel_a', delivered)).rejects.toThrow('it died');
    await fixture.receipts.note(fixture.scope, 'channel_a', delivered);
    expect(fixture.reported).toEqual(['sent', 'delivered']);
  });

  it('one that failed after it was taken is a failure, which the owner can see', async () => {
    meta.personWrites(to);
    const id = await say('Hello');
    await fixture.deliver(id);
    const messageId = (await fixture.delivery(id)).parts?.[0]?.providerMessageId ?? '';
    await fixture.receipts.note(fixture.scope, 'channel_a', receipt({ messageId, state: 'failed', errorCodes: ['131026'] }));
    expect((await fixture.delivery(id)).view()).toMatchObject({ state: 'failed', problem: { code: '131026' } });
    expect((await fixture.scope.channels.find('channel_a'))?.lastError).toMatchObject({ code: '131026' });
    expect(fixture.reported).toEqual(['sent', 'failed']);
  });
});

describe('on Messenger', () => {
  it('a watermark that bears the time of a message means that one, too, although its answer took a while', async () => {
    const settings = { pageId: '4042', accessToken: 'meta-token', verifyToken: 'v', appSecret: 's' };
    let takenAtMs = 0;
    const now = (): number => {
      takenAtMs = fixture.nowMs;
      fixture.nowMs += 300;
      return takenAtMs;
    };
    const meta = await new FakeMeta({ ...settings, phoneNumberId: '1', now }).start();
    fixture.clearing.use(meta);
    fixture.urls = { ...fixture.urls, metaGraph: meta.url };
    await fixture.connect('channel_b', settings);
    meta.personWrites('777');
    const id = await fixture.say('one', { channel: 'channel_b', to: '777', inboundAt: new Date(fixture.nowMs).toISOString() });
    await fixture.deliver(id);
    expect((await fixture.delivery(id)).state).toBe('sent');
    await fixture.receipts.note(
      fixture.scope,
      'channel_b',
      receipt({ messageId: null, recipient: '777', upToMs: takenAtMs, state: 'read' }),
    );
    expect((await fixture.delivery(id)).state).toBe('read');
  });

  it.each([
    ['the page', '4042', 1],
    ['the Instagram account beside it', '4043', 2],
  ])('who writes to %s has the limit of that', async (_what, account, parts) => {
    const settings = { pageId: '4042', instagramId: '4043', accessToken: 'meta-token', verifyToken: 'v', appSecret: 's' };
    const meta = await new FakeMeta({ ...settings, phoneNumberId: '1', now: () => fixture.nowMs }).start();
    fixture.clearing.use(meta);
    fixture.urls = { ...fixture.urls, metaGraph: meta.url };
    await fixture.connect('channel_b', settings);
    meta.personWrites('777');
    if (account === settings.instagramId) meta.personWritesOnInstagram('777');
    const sessionId = deriveSessionId('cs', 'channel_b', '777');
    await fixture.scope.sessions.publish({ ...emptySession(sessionId), channelAddress: { to: '777', thread: null, account } });
    const text = 'word '.repeat(380).trim();
    const id = await fixture.say(text, { channel: 'channel_b', to: '777', sessionId, inboundAt: new Date(fixture.nowMs).toISOString() });
    await fixture.deliver(id);
    expect((await fixture.delivery(id)).state).toBe('sent');
    expect(meta.sent).toHaveLength(parts);
  });

  it('a watermark states up to when all was read', async () => {
    const settings = { pageId: '4042', accessToken: 'meta-token', verifyToken: 'v', appSecret: 's' };
    const meta = await new FakeMeta({ ...settings, phoneNumberId: '1', now: () => fixture.nowMs }).start();
    fixture.clearing.use(meta);
    fixture.urls = { ...fixture.urls, metaGraph: meta.url };
    await fixture.connect('channel_b', settings);
    meta.personWrites('777');
    const ids: string[] = [];
    for (const text of ['one', 'two', 'three']) {
      ids.push(await fixture.say(text, { channel: 'channel_b', to: '777', inboundAt: new Date(fixture.nowMs).toISOString() }));
      await fixture.deliver(ids.at(-1) ?? '');
      fixture.nowMs += 60_000;
    }
    const upToMs = fixture.nowMs - 90_000;
    await fixture.receipts.note(fixture.scope, 'channel_b', receipt({ messageId: null, recipient: '777', upToMs, state: 'read' }));
    expect(await Promise.all(ids.map(async (id) => (await fixture.delivery(id)).state))).toEqual(['read', 'read', 'sent']);
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
