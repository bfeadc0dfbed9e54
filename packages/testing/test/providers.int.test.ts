import { createHmac } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { FakeMeta, FakeSlack, FakeTelegram, gate, serveRequests } from '@concierge/testing';

const meta = { accessToken: 't', appSecret: 'app-secret', phoneNumberId: '1', pageId: '2' };
const slack = { botToken: 'xoxb', signingSecret: 'signing', teamId: 'T1', botUserId: 'U1' };

interface Seen {
  readonly headers: Headers;
  readonly text: string;
}

/** A receiver that gives these answers in turn, and 200 after that. */
async function receiver(seen: Seen[], ...answers: Response[]): Promise<{ readonly url: string } & AsyncDisposable> {
  return serveRequests(async (request) => {
    if (request.method === 'GET') return new Response(new URL(request.url).searchParams.get('hub.challenge'));
    const text = await request.text();
    seen.push({ headers: request.headers, text });
    const { type, challenge } = Object(JSON.parse(text));
    if (type === 'url_verification') return new Response(String(challenge));
    return answers.shift() ?? new Response(null);
  });
}

describe('the fake Meta', () => {
  it('checks an address, signs the very bytes it sends, and comes again until they are taken', async () => {
    await using provider = await new FakeMeta(meta).start();
    const seen: Seen[] = [];
    await using webhook = await receiver(seen, new Response(null, { status: 500 }));
    await provider.register({ url: webhook.url, verifyToken: 'v' });
    const tries = await provider.deliver({ text: 'ä/😀' });
    expect(tries.map(({ status }) => status)).toEqual([500, 200]);
    expect(seen[0]?.text).toBe(String.raw`{"text":"\u00e4\/\ud83d\ude00"}`);
    const digest = createHmac('sha256', meta.appSecret)
      .update(seen[0]?.text ?? '')
      .digest('hex');
    expect(seen[1]?.headers.get('x-hub-signature-256')).toBe(`sha256=${digest}`);
  });

  it('refuses an address that does not give the challenge back', async () => {
    await using provider = await new FakeMeta(meta).start();
    await using webhook = await serveRequests(() => new Response('no'));
    await expect(provider.register({ url: webhook.url, verifyToken: 'v' })).rejects.toThrow('could not be validated');
  });

  it('tells of a message in the wrong order', async () => {
    await using provider = await new FakeMeta(meta).start();
    const seen: Seen[] = [];
    await using webhook = await receiver(seen);
    await provider.register({ url: webhook.url, verifyToken: 'v' });
    await provider.deliverReceipts('wamid.1', '4930');
    expect(seen.map(({ text }) => /"status":"(?<status>\w+)"/u.exec(text)?.groups?.['status'])).toEqual(['read', 'delivered', 'sent']);
  });
});

describe('the fake Telegram', () => {
  async function registered(provider: FakeTelegram, url: string): Promise<void> {
    await fetch(`${provider.url}/bot7:t/setWebhook`, { method: 'POST', body: JSON.stringify({ url, secret_token: 'secret' }) });
  }

  it('brings what is said in a chat one after the other, again until it is taken', async () => {
    await using provider = await new FakeTelegram({ botToken: '7:t' }).start();
    const seen: Seen[] = [];
    await using webhook = await receiver(seen, new Response(null, { status: 503, headers: { 'retry-after': '1' } }));
    await registered(provider, webhook.url);
    await Promise.all([provider.deliver(5, { update_id: 1 }), provider.deliver(5, { update_id: 2 })]);
    expect(seen.map(({ text }) => text)).toEqual(['{"update_id":1}', '{"update_id":1}', '{"update_id":2}']);
    expect(seen[0]?.headers.get('x-telegram-bot-api-secret-token')).toBe('secret');
  });

  it('brings what is said in two chats side by side', async () => {
    await using provider = await new FakeTelegram({ botToken: '7:t' }).start();
    const arrived = gate();
    await using webhook = await serveRequests(async (request) => {
      if ((await request.text()) === '{"update_id":1}') await arrived.opened;
      else arrived.open();
      return new Response(null);
    });
    await registered(provider, webhook.url);
    const both = await Promise.all([provider.deliver(5, { update_id: 1 }), provider.deliver(6, { update_id: 2 })]);
    expect(both.flat().map(({ status }) => status)).toEqual([200, 200]);
  });

  it('does what an answer says, and stays away after 410', async () => {
    await using provider = await new FakeTelegram({ botToken: '7:t' }).start();
    await using webhook = await receiver(
      [],
      Response.json({ method: 'sendMessage', chat_id: 5, text: 'hi' }),
      new Response(null, { status: 410 }),
    );
    await registered(provider, webhook.url);
    await provider.deliver(5, { update_id: 1 });
    expect(provider.sent).toEqual([{ method: 'sendMessage', chat_id: 5, text: 'hi' }]);
    await provider.deliver(5, { update_id: 2 });
    expect(provider.webhook).toBeUndefined();
  });
});

describe('the fake Slack', () => {
  it('checks an address, signs each try anew and says which it is', async () => {
    await using provider = await new FakeSlack(slack).start();
    const seen: Seen[] = [];
    await using webhook = await receiver(seen, new Response(null, { status: 500 }));
    await provider.register(webhook.url);
    await provider.deliver({ type: 'message', text: 'hi' });
    const [, first, second] = seen;
    const timestamp = second?.headers.get('x-slack-request-timestamp') ?? '';
    const digest = createHmac('sha256', slack.signingSecret)
      .update(`v0:${timestamp}:${second?.text ?? ''}`)
      .digest('hex');
    expect(second?.headers.get('x-slack-signature')).toBe(`v0=${digest}`);
    expect([first, second].map((post) => post?.headers.get('x-slack-retry-num') ?? null)).toEqual([null, '1']);
  });

  it('brings a mention twice, and the bot’s own words back', async () => {
    await using provider = await new FakeSlack(slack).start();
    const seen: Seen[] = [];
    await using webhook = await receiver(seen);
    await provider.register(webhook.url);
    await provider.deliverMention({ channel: 'C1', user: 'U2', text: '<@U1> hi', ts: '1.2' });
    await fetch(`${provider.url}/chat.postMessage`, {
      method: 'POST',
      headers: { authorization: 'Bearer xoxb' },
      body: JSON.stringify({ channel: 'C1', text: 'hello' }),
    });
    const events = seen.slice(1).map(({ text }) => Object(JSON.parse(text)).event);
    expect(events.map(({ type }) => type)).toEqual(['app_mention', 'message', 'message']);
    expect(events[2]).toMatchObject({ user: 'U1', bot_id: 'B0FAKE', text: 'hello' });
  });

  it('ends streams', async () => {
    await using provider = await new FakeSlack(slack).start();
    const call = async (method: string, body: object): Promise<unknown> => {
      const request = { method: 'POST', headers: { authorization: 'Bearer xoxb' }, body: JSON.stringify(body) };
      return (await fetch(`${provider.url}/${method}`, request)).json();
    };
    const { ts } = Object(await call('chat.startStream', { channel: 'C1' }));
    expect(await call('chat.appendStream', { ts })).toMatchObject({ ok: true });
    expect(await call('chat.stopStream', { ts })).toMatchObject({ ok: true });
    expect(await call('chat.appendStream', { ts })).toMatchObject({ ok: false, error: 'message_not_in_streaming_state' });
  });
});
