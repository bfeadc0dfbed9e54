import { describe, expect, it } from '@jest/globals';
import { messagingChannels, toAppName, toSimulatedAddress, type ChannelSettings, type MessagingChannel } from '@concierge/contract';
import { channelAdapters, openSender, providerUrls, readBinding, simulatedRequests, type Delivery } from './index.ts';

const url = 'https://chat.example.com/webhook/any/tenant';
const nowMs = Date.parse('2026-11-21T12:00:00Z');
const meta = { accessToken: 'access', verifyToken: 'verify', appSecret: 'app-secret' };
const settingsOf: { readonly [Channel in MessagingChannel]: ChannelSettings[Channel] } = {
  channel_a: { phoneNumberId: '100', ...meta },
  channel_b: { pageId: '200', ...meta },
  channel_c: { botToken: '300:token', secretToken: 'secret-token' },
  channel_d: { botToken: 'xoxb-1', signingSecret: '8f742231b10e8888abcd99yyyzzz85a5', teamId: 'T1', botUserId: 'U1' },
  channel_e: { accountSid: `AC${'0'.repeat(32)}`, authToken: 'auth-token', from: '+4930123456' },
};

interface Read {
  readonly isSigned: boolean;
  readonly isSignedByAnother: boolean;
  readonly delivery: Delivery;
}

function simulate<Of extends MessagingChannel>(channel: Of, text: string): Read {
  const settings = settingsOf[channel];
  const adapter = channelAdapters[channel];
  const written = { id: 'simulated.1', from: toSimulatedAddress('ada'), name: 'Ada', text, nowMs, url };
  const request = { ...simulatedRequests[channel](written, settings), url, nowMs };
  const other = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, `${value}0`]));
  return {
    isSigned: adapter.verify(request, settings),
    isSignedByAnother: adapter.verify({ ...request, headers: other }, settings),
    delivery: adapter.parse(request.body, settings, url),
  };
}

describe.each(messagingChannels.map((channel) => ({ channel, name: toAppName(channel) })))(
  'a simulated message of $name',
  ({ channel }) => {
    it('is signed and read as the provider’s own', () => {
      const text = 'Is <it> here & now? Größe 42';
      const { isSigned, isSignedByAnother, delivery } = simulate(channel, text);
      expect({ isSigned, isSignedByAnother }).toEqual({ isSigned: true, isSignedByAnother: false });
      const conversation = { id: 'simulated:ada', isGroup: false };
      expect(delivery).toMatchObject({
        kind: 'items',
        items: [{ kind: 'message', text, sender: { id: 'simulated:ada', aliases: [] }, conversation }],
      });
    });

    it('is answered without a request to the provider', async () => {
      // Nothing listens there: whatever is sent fails.
      const urls = Object.assign(
        { ...providerUrls },
        Object.fromEntries(Object.keys(providerUrls).map((name) => [name, 'http://127.0.0.1:1'])),
      );
      const sender = openSender(readBinding(channel, settingsOf[channel]), { urls, timeoutMs: 1000 });
      const { signal } = new AbortController();
      const message = { part: { text: 'Yes.', plain: 'Yes.' }, form: 'plain' } as const;
      expect(await sender.send({ ...message, to: 'simulated:ada' }, signal)).toEqual({ kind: 'sent', providerMessageId: undefined });
      expect(await sender.showTyping({ to: 'simulated:ada', inboundMessageId: 'simulated.1' }, signal)).toBe(false);
      expect((await sender.send({ ...message, to: '4915112345678' }, signal)).kind).not.toBe('sent');
    });
  },
);
