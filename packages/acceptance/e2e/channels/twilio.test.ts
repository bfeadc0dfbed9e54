import { describe, expect, it } from '@jest/globals';
import { eventually, say } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import { appSettings, TestChannels } from './test-channels.ts';

/** Twilio signs the address that it calls: this one, whichever gateway it leads to. */
const publicUrl = 'https://chat.example.com';
const contact = '+4915112345678';

let fixture: TestChannels;

setUpOnce(async (stack) => {
  fixture = stack.use(await TestChannels.start({ env: { PUBLIC_URL: publicUrl } }));
});

describe('a message by SMS', () => {
  it('is answered, and its answer is known to have arrived', async () => {
    fixture.model.when(/sms one/u, [say('At **noon**.')]);
    await fixture.tenantOn('shop-sms', 'twilio');
    const through = fixture.webhookUrl('twilio', 'shop-sms');
    const url = `${publicUrl}/webhook/twilio/shop-sms`;
    const message = { MessageSid: 'SMone', From: contact, To: appSettings.twilio.from, Body: 'sms one: when?', NumMedia: '0' };
    expect(await fixture.twilio.deliver(message, { url, through })).toMatchObject([{ status: 200 }]);
    const sent = await eventually(() => fixture.twilio.sent[0]);
    expect(sent).toMatchObject({ To: contact, From: appSettings.twilio.from, Body: 'At noon.' });
    const callback = String(sent['StatusCallback']);
    expect(callback.startsWith(`${url}?mark=m_`)).toBe(true);
    const scope = await fixture.system.scope('shop-sms');
    await eventually(async () => (await scope.outbox.lanes()).length === 0);
    const status = { MessageSid: 'SMours', MessageStatus: 'delivered', From: appSettings.twilio.from, To: contact };
    const brought = { url: callback, through: callback.replace(url, through) };
    expect(await fixture.twilio.deliver(status, brought)).toMatchObject([{ status: 200 }]);
    const id = new URL(callback).searchParams.get('mark')?.split('.')[0] ?? '';
    await eventually(async () => (await scope.outbox.delivery(id))?.state === 'delivered');
  });
});
