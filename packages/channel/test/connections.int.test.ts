import { describe, expect, it } from '@jest/globals';
import { messagingChannels, toAppName, type MessagingChannel, type ChannelSettings, type ChannelView } from '@concierge/contract';
import { gate, serveRequests } from '@concierge/testing';
import { ChannelConnections, type BindingStore } from '@concierge/channel';

const settings: ChannelSettings = {
  channel_a: { phoneNumberId: '1065', accessToken: 'EAAB-token', verifyToken: 'v', appSecret: 's' },
  channel_b: { pageId: '4042', accessToken: 'EAAB-token', verifyToken: 'v', appSecret: 's' },
  channel_c: { botToken: '7000:telegram-token', secretToken: 'hook' },
  channel_d: { botToken: 'xoxb-token', signingSecret: 's', teamId: 'T1', botUserId: 'U1' },
  channel_e: { accountSid: `AC${'0'.repeat(32)}`, authToken: 'auth-token', from: '+15005550006' },
};

/** Keeps one binding, as it was given. */
class OneBinding implements BindingStore {
  #view: ChannelView | undefined;
  #settings: unknown;

  async list(): Promise<ChannelView[]> {
    return this.#view === undefined ? [] : [this.#view];
  }

  async find(): Promise<ChannelView | undefined> {
    return this.#view;
  }

  async credentials<Channel extends MessagingChannel>(): Promise<ChannelSettings[Channel] | undefined> {
    // eslint-disable-next-line typescript/no-unsafe-type-assertion -- it was given for the one channel of the test
    return this.#settings as ChannelSettings[Channel] | undefined;
  }

  async connect(channel: MessagingChannel, given: unknown): Promise<ChannelView> {
    this.#settings = given;
    const none = { reason: null, createdAt: null, updatedAt: null, lastInboundAt: null, lastOutboundAt: null, lastError: null };
    this.#view = { channel, app: toAppName(channel), state: 'enabled', identifiers: {}, secrets: {}, ...none };
    return this.#view;
  }

  async learn(): Promise<void> {
    throw new Error('Not expected: the provider gave no answer.');
  }

  async disconnect(): Promise<void> {
    this.#view = undefined;
  }
}

describe('a provider that takes the question and does not answer', () => {
  it.each(messagingChannels)('does not prevent connecting %s', async (channel) => {
    const never = gate();
    await using silent = await serveRequests(async () => {
      await never.opened;
      return new Response(null);
    });
    const { origin } = new URL(silent.url);
    const urls = { metaGraph: origin, telegram: origin, slack: origin, twilio: origin };
    const connections = new ChannelConnections({ urls, publicUrl: 'https://chat.example.com', timeoutMs: 50 });
    const tenant = { tenantId: 'acme', channels: new OneBinding() };
    const { shown, isNew } = await connections.connect(tenant, channel, settings[channel]);
    expect([isNew, shown.state]).toEqual([true, 'enabled']);
    expect(shown.checks?.map(({ ok }) => ok)).not.toContain(true);
    expect((await connections.test(tenant, channel)).ok).toBe(false);
    await connections.disconnect(tenant, channel);
    await expect(connections.find(tenant, channel)).rejects.toMatchObject({ code: 'not_found' });
    never.open();
  });
});
