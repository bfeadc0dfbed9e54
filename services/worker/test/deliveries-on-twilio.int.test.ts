import { describe, expect, it } from '@jest/globals';
import type { NewOutbound } from '@concierge/tenant';
import { FakeTwilio, twilioError } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';
import type { DeliveryReceipt } from '@concierge/turn';
import { TestDeliveries } from './test-deliveries.ts';

const binding = { accountSid: `AC${'1'.repeat(32)}`, authToken: 'auth-token', messagingServiceSid: `MG${'2'.repeat(32)}` };
const sms = '+4915112345678';
const onWhatsApp = 'whatsapp:+4915112345678';

let stage: TestDeliveries;
let twilio: FakeTwilio;

setUpEach(async (stack) => {
  stage = stack.use(await TestDeliveries.open());
  twilio = await new FakeTwilio({ ...binding, senders: [] }).start();
  stage.clearing.use(twilio);
  stage.urls = { ...stage.urls, twilio: twilio.url };
  stage.publicUrl = 'https://chat.example.com';
  await stage.connect('channel_e', binding);
});

const say = async (text: string, facts: Partial<NewOutbound> = {}): Promise<string> =>
  stage.say(text, { channel: 'channel_e', to: sms, ...facts });

const receipt = (facts: Partial<DeliveryReceipt>): DeliveryReceipt => ({
  messageId: null,
  upToMs: null,
  recipient: sms,
  state: 'delivered',
  errorCodes: [],
  ...facts,
});

describe('on Twilio', () => {
  it('an SMS goes out whenever it is, with the address for what becomes of it', async () => {
    const id = await say('Hello **Ann**');
    await stage.deliver(id);
    expect((await stage.delivery(id)).state).toBe('sent');
    const StatusCallback = `https://chat.example.com/webhook/twilio/${stage.scope.tenantId}?mark=${id}.0`;
    expect(twilio.sent).toEqual([{ To: sms, MessagingServiceSid: binding.messagingServiceSid, Body: 'Hello Ann', StatusCallback }]);
  });

  it('a long one goes out in numbered parts, in order', async () => {
    const id = await say('All work and no play. '.repeat(200));
    await stage.deliver(id);
    expect((await stage.delivery(id)).state).toBe('sent');
    expect(twilio.sent.map(({ Body }) => String(Body).slice(0, 6))).toEqual(['(1/3) ', '(2/3) ', '(3/3) ']);
  });

  it('nothing is tried on WhatsApp when the contact has not written within a day', async () => {
    const late = await say('Hello', { to: onWhatsApp, inboundAt: new Date(stage.nowMs - 25 * 3_600_000).toISOString() });
    await stage.deliver(late);
    expect((await stage.delivery(late)).view()).toMatchObject({ state: 'withheld', problem: { code: 'window_closed' } });
    expect(twilio.sent).toEqual([]);
    const inTime = await say('*Hello*', { to: onWhatsApp, inboundAt: new Date(stage.nowMs).toISOString() });
    await stage.deliver(inTime);
    expect(twilio.sent).toMatchObject([{ To: onWhatsApp, Body: '_Hello_' }]);
  });

  it('a contact who has opted out ends the message, and no other', async () => {
    twilio.optOut(sms);
    const id = await say('Hello');
    await stage.deliver(id);
    expect((await stage.delivery(id)).view()).toMatchObject({ state: 'failed', problem: { code: '21610' } });
    expect((await stage.scope.channels.find('channel_e'))?.state).toBe('enabled');
    const other = await say('Hello', { to: '+4915187654321' });
    await stage.deliver(other);
    expect((await stage.delivery(other)).state).toBe('sent');
  });

  it('a limit throttles the binding for as long as Twilio asks', async () => {
    twilio.failSends({ ...twilioError(20429, 'Too Many Requests', { status: 429 }), headers: { 'retry-after': '7' } });
    const id = await say('Hello');
    expect(await stage.deliver(id)).toEqual({ kind: 'parked', untilMs: stage.nowMs + 7000 });
    expect(stage.held).toEqual([{ channel: 'channel_e', ms: 7000 }]);
  });

  it('refused credentials leave the binding receiving', async () => {
    twilio.failSends(twilioError(20003, 'Authenticate', { status: 401 }));
    await stage.deliver(await say('Hello'));
    expect((await stage.scope.channels.find('channel_e'))?.state).toBe('receive_only');
  });

  it('a status moves a message forward, and a failure of WhatsApp’s window is named', async () => {
    const id = await say('Hello');
    await stage.deliver(id);
    const messageId = (await stage.delivery(id)).parts?.[0]?.providerMessageId ?? '';
    expect(messageId).toMatch(/^SM/u);
    await stage.receipts.note(stage.scope, 'channel_e', receipt({ messageId }));
    expect((await stage.delivery(id)).state).toBe('delivered');
    const lost = await say('Hello again');
    await stage.deliver(lost);
    const lostId = (await stage.delivery(lost)).parts?.[0]?.providerMessageId ?? '';
    await stage.receipts.note(stage.scope, 'channel_e', receipt({ messageId: lostId, state: 'failed', errorCodes: ['63016'] }));
    expect((await stage.delivery(lost)).view()).toMatchObject({ state: 'failed', problem: { code: '63016' } });
  });

  it('a message whose answer never came is known by the mark in the address of its status', async () => {
    twilio.failSends('cut');
    const id = await say('Hello');
    await stage.deliver(id);
    expect((await stage.delivery(id)).state).toBe('unknown');
    const mark = new URL(String(twilio.sent[0]?.['StatusCallback'])).searchParams.get('mark') ?? '';
    await stage.receipts.note(stage.scope, 'channel_e', receipt({ messageId: 'SMours', mark }));
    expect((await stage.delivery(id)).state).toBe('delivered');
  });
});
