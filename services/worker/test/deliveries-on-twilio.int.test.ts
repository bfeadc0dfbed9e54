import { describe, expect, it } from '@jest/globals';
import type { NewOutbound } from '@concierge/tenant';
import { FakeTwilio, twilioError } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';
import type { DeliveryReceipt } from '@concierge/turn';
import { TestDeliveries } from './test-deliveries.ts';

const binding = { accountSid: `AC${'1'.repeat(32)}`, authToken: 'auth-token', messagingServiceSid: `MG${'2'.repeat(32)}` };
const sms = '+4915112345678';
const onWhatsApp = 'whatsapp:+4915112345678';

let fixture: TestDeliveries;
let twilio: FakeTwilio;

setUpEach(async (stack) => {
  fixture = stack.use(await TestDeliveries.open());
  twilio = await new FakeTwilio({ ...binding, senders: [] }).start();
  fixture.clearing.use(twilio);
  fixture.urls = { ...fixture.urls, twilio: twilio.url };
  fixture.publicUrl = 'https://chat.example.com';
  await fixture.connect('channel_e', binding);
});

const say = async (text: string, facts: Partial<NewOutbound> = {}): Promise<string> =>
  fixture.say(text, { channel: 'channel_e', to: sms, ...facts });

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
    await fixture.deliver(id);
    expect((await fixture.delivery(id)).state).toBe('sent');
    const StatusCallback = `https://chat.example.com/webhook/twilio/${fixture.scope.tenantId}?mark=${id}.0`;
    expect(twilio.sent).toEqual([{ To: sms, MessagingServiceSid: binding.messagingServiceSid, Body: 'Hello Ann', StatusCallback }]);
  });

  it('a long one goes out in numbered parts, in order', async () => {
    const id = await say('All work and no play. '.repeat(200));
    await fixture.deliver(id);
    expect((await fixture.delivery(id)).state).toBe('sent');
    expect(twilio.sent.map(({ Body }) => String(Body).slice(0, 6))).toEqual(['(1/3) ', '(2/3) ', '(3/3) ']);
  });

  it('nothing is tried on WhatsApp when the contact has not written within a day', async () => {
    const late = await say('Hello', { to: onWhatsApp, inboundAt: new Date(fixture.nowMs - 25 * 3_600_000).toISOString() });
    await fixture.deliver(late);
    expect((await fixture.delivery(late)).view()).toMatchObject({ state: 'withheld', problem: { code: 'window_closed' } });
    expect(twilio.sent).toEqual([]);
    const inTime = await say('*Hello*', { to: onWhatsApp, inboundAt: new Date(fixture.nowMs).toISOString() });
    await fixture.deliver(inTime);
    expect(twilio.sent).toMatchObject([{ To: onWhatsApp, Body: '_Hello_' }]);
  });

  it('a contact who has opted out ends the message, and no other', async () => {
    twilio.optOut(sms);
    const id = await say('Hello');
    await fixture.deliver(id);
    expect((await fixture.delivery(id)).view()).toMatchObject({ state: 'failed', problem: { code: '21610' } });
    expect((await fixture.scope.channels.find('channel_e'))?.state).toBe('enabled');
    const other = await say('Hello', { to: '+4915187654321' });
    await fixture.deliver(other);
    expect((await fixture.delivery(other)).state).toBe('sent');
  });

  it('a limit throttles the binding for as long as Twilio asks', async () => {
    twilio.failSends({ ...twilioError(20429, 'Too Many Requests', { status: 429 }), headers: { 'retry-after': '7' } });
    const id = await say('Hello');
    expect(await fixture.deliver(id)).toEqual({ kind: 'parked', untilMs: fixture.nowMs + 7000 });
    expect(fixture.held).toEqual([{ channel: 'channel_e', ms: 7000 }]);
  });

  it('refused credentials leave the binding receiving', async () => {
    twilio.failSends(twilioError(20003, 'Authenticate', { status: 401 }));
    await fixture.deliver(await say('Hello'));
    expect((await fixture.scope.channels.find('channel_e'))?.state).toBe('receive_only');
  });

  it('a status moves a message forward, and a failure of WhatsApp’s window is named', async () => {
    const id = await say('Hello');
    await fixture.deliver(id);
    const messageId = (await fixture.delivery(id)).parts?.[0]?.providerMessageId ?? '';
    expect(messageId).toMatch(/^SM/u);
    await fixture.receipts.note(fixture.scope, 'channel_e', receipt({ messageId }));
    expect((await fixture.delivery(id)).state).toBe('delivered');
    const lost = await say('Hello again');
    await fixture.deliver(lost);
    const lostId = (await fixture.delivery(lost)).parts?.[0]?.providerMessageId ?? '';
    await fixture.receipts.note(fixture.scope, 'channel_e', receipt({ messageId: lostId, state: 'failed', errorCodes: ['63016'] }));
    expect((await fixture.delivery(lost)).view()).toMatchObject({ state: 'failed', problem: { code: '63016' } });
  });

  it('a message whose answer never came is known by the reference in the address of its status', async () => {
    twilio.failSends('cut');
    const id = await say('Hello');
    await fixture.deliver(id);
    expect((await fixture.delivery(id)).state).toBe('unknown');
    const reference = new URL(String(twilio.sent[0]?.['StatusCallback'])).searchParams.get('mark') ?? '';
    await fixture.receipts.note(fixture.scope, 'channel_e', receipt({ messageId: 'SMours', reference }));
    expect((await fixture.delivery(id)).state).toBe('delivered');
  });
});
