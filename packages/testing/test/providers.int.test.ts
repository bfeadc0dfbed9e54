import { createHmac } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { FakeMeta, FakeSlack, FakeTelegram, FakeTwilio, gate, serveRequests, twilioSignature } from '@concierge/testing';

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

  it('sends the receipts of a message in the wrong order', async () => {
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

  it('brings messages of a chat one after the other, again until it is taken', async () => {
    await using provider = await new FakeTelegram({ botToken: '7:t' }).start();
    const seen: Seen[] = [];
    await using webhook = await receiver(seen, new Response(null, { status: 503, headers: { 'retry-after': '1' } }));
    await registered(provider, webhook.url);
    await Promise.all([provider.deliver(5, { update_id: 1 }), provider.deliver(5, { update_id: 2 })]);
    expect(seen.map(({ text }) => text)).toEqual(['{"update_id":1}', '{"update_id":1}', '{"update_id":2}']);
    expect(seen[0]?.headers.get('x-telegram-bot-api-secret-token')).toBe('secret');
  });

  it('brings messages of two chats side by side', async () => {
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

  it('obeys an answer, and stays away after 410', async () => {
    await using provider = await new FakeTelegram({ botToken: '7:t' }).start();
    await using webhook = await receiver(
      [],
      Response.json({ method: 'sendMessage', chat_id: 5, text: 'hi' }),
      new Response(null, { status: 410 }),
    );
    await registered(provider, webhook.url);
    await provider.deliver(5, { update_id: 1 });
    expect(provider.sent).toEqual([{ chat_id: 5, text: 'hi' }]);
    await provider.deliver(5, { update_id: 2 });
    expect(provider.webhook).toBeUndefined();
  });
});

describe('the fake Slack', () => {
  it('checks an address, signs each try and numbers it', async () => {
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

/** A request, and the answer of the real server. */
type Refusal = readonly [what: string, body: object, answer: object];

async function answerTo(url: string, body: object, authorization?: string): Promise<unknown> {
  const headers = { 'content-type': 'application/json', ...(authorization !== undefined && { authorization }) };
  return (await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })).json();
}

describe('what the real Telegram refuses', () => {
  const refused = (description: string) => ({ ok: false, error_code: 400, description: `Bad Request: ${description}` });
  const notNumber = refused('Field "message_id" must be a Number');
  const text = { chat_id: 5, text: 'hi' };

  it.each<Refusal>([
    ['a message id that is no number', { ...text, reply_parameters: { message_id: null } }, notNumber],
    ['a message id in quotes', { ...text, reply_parameters: { message_id: '31' } }, notNumber],
    ['no chat', { text: 'hi' }, refused('chat_id is empty')],
    ['a chat that is none', { ...text, chat_id: '5' }, refused('chat not found')],
    ['a field that there is not', { ...text, reply_to: 5 }, refused('unexpected field "reply_to"')],
    ['no text', { chat_id: 5 }, refused('message text is empty')],
    ['a text of which nothing can be seen', { chat_id: 5, text: '\u200B\u2060' }, refused('message text is empty')],
    ['a text that is too long', { chat_id: 5, text: 'a'.repeat(4097) }, refused('message is too long')],
  ])('is refused here: %s', async (_what, body, answer) => {
    await using provider = await new FakeTelegram({ botToken: '7:t' }).start();
    expect(await answerTo(`${provider.url}/bot7:t/sendMessage`, body)).toEqual(answer);
  });
});

describe('what the real Graph API refuses', () => {
  const refused = (code: number, details?: string) => ({
    error: expect.objectContaining({ code, ...(details !== undefined && { error_data: expect.objectContaining({ details }) }) }),
  });
  const toAnn = { messaging_product: 'whatsapp', recipient_type: 'individual', to: '4930', type: 'text', text: { body: 'hi' } };
  const group = 'Y2FwaV9ncm91cDoxODA1NTU1MDE3MjoxMjAzNjMyMjI3NzE5NjMwNjcZD';

  it.each<Refusal>([
    ['a group as a user', { ...toAnn, to: group }, refused(131_009)],
    ['a user as a group', { ...toAnn, recipient_type: 'group' }, refused(131_009)],
    ['no recipient', { ...toAnn, to: undefined }, refused(131_008, 'Parameter to is mandatory.')],
    [
      'a text that is too long',
      { ...toAnn, text: { body: 'a'.repeat(4097) } },
      refused(100, "Param text['body'] must be at most 4096 characters long."),
    ],
    ['an empty text', { ...toAnn, text: { body: '' } }, refused(131_009)],
    ['a field that there is not', { ...toAnn, mark: 'm' }, refused(100, 'Unexpected key "mark" on param.')],
    [
      'a flag that is a word',
      { ...toAnn, text: { body: 'hi', preview_url: 'no' } },
      refused(100, "Param text['preview_url'] must be a boolean."),
    ],
  ])('is refused here, of WhatsApp: %s', async (_what, body, answer) => {
    await using provider = await new FakeMeta(meta).start();
    provider.personWrites('4930');
    expect(await answerTo(`${provider.url}/1/messages`, body, 'Bearer t')).toEqual(answer);
  });

  const toBob = { recipient: { id: '77' }, messaging_type: 'RESPONSE', message: { text: 'hi' } };

  it.each<Refusal>([
    ['an empty text', { ...toBob, message: { text: '' } }, refused(100)],
    ['a text that is too long', { ...toBob, message: { text: 'a'.repeat(2001) } }, refused(100)],
    ['an id that is a number', { ...toBob, recipient: { id: 77 } }, refused(100)],
    ['a field that there is not', { ...toBob, message: { text: 'hi', mark: 'm' } }, refused(100)],
  ])('is refused here, of Messenger: %s', async (_what, body, answer) => {
    await using provider = await new FakeMeta(meta).start();
    provider.personWrites('77');
    expect(await answerTo(`${provider.url}/2/messages`, body, 'Bearer t')).toEqual(answer);
  });

  it('is refused here, of Instagram: what Messenger would take', async () => {
    await using provider = await new FakeMeta(meta).start();
    provider.personWritesOnInstagram('77');
    const text = 'é'.repeat(501);
    expect(await answerTo(`${provider.url}/2/messages`, { ...toBob, message: { text } }, 'Bearer t')).toEqual(refused(100));
  });
});

describe('what the real Slack refuses', () => {
  const refused = (error: string) => ({ ok: false, error });
  const post = { channel: 'C1', text: 'hi' };

  it.each<Refusal>([
    ['no channel', { text: 'hi' }, refused('channel_not_found')],
    ['an empty text', { ...post, text: ' ' }, refused('no_text')],
    ['a text that is too long', { ...post, text: 'a'.repeat(40_001) }, refused('msg_too_long')],
    ['a thread that is no timestamp', { ...post, thread_ts: 'C1/1.2' }, refused('invalid_thread_ts')],
    ['a field that there is not', { ...post, mark: 'm' }, refused('invalid_arg_name')],
    ['a flag that is a word', { ...post, mrkdwn: 'no' }, refused('invalid_arguments')],
  ])('is refused here: %s', async (_what, body, answer) => {
    await using provider = await new FakeSlack(slack).start();
    expect(await answerTo(`${provider.url}/chat.postMessage`, body, 'Bearer xoxb')).toEqual(answer);
  });
});

describe('the fake Twilio', () => {
  const account = { accountSid: `AC${'1'.repeat(32)}`, authToken: 'auth-token', senders: ['+15005550006', 'whatsapp:+15005550006'] };
  const to = '+4915112345678';
  const message = { To: to, From: '+15005550006', Body: 'Hello' };

  interface Posted {
    readonly authToken?: string;
    readonly accountSid?: string;
  }

  async function post(
    provider: FakeTwilio,
    fields: Readonly<Record<string, string>>,
    { authToken = account.authToken, accountSid = account.accountSid }: Posted = {},
  ): Promise<unknown> {
    const authorization = `Basic ${Buffer.from(`${account.accountSid}:${authToken}`).toString('base64')}`;
    const address = `${provider.url}/2010-04-01/Accounts/${accountSid}/Messages.json`;
    const answer = await fetch(address, { method: 'POST', headers: { authorization }, body: new URLSearchParams(fields) });
    return answer.json();
  }

  it('takes a message, and refuses what the real one refuses, in its words', async () => {
    await using provider = await new FakeTwilio(account).start();
    expect(await post(provider, message)).toMatchObject({ sid: expect.stringMatching(/^SM\d{32}$/u), status: 'queued', error_code: null });
    const { To: _to, ...withoutTo } = message;
    const { From: _from, ...withoutFrom } = message;
    expect(await post(provider, withoutTo)).toEqual({
      code: 21604,
      message: "A 'To' phone number is required.",
      more_info: 'https://www.twilio.com/docs/errors/21604',
      status: 400,
    });
    expect(await post(provider, withoutFrom)).toMatchObject({ code: 21603 });
    expect(await post(provider, { ...message, Body: '' })).toMatchObject({ code: 21602 });
    expect(await post(provider, { ...message, Body: 'x'.repeat(1601) })).toMatchObject({ code: 21617 });
    expect(await post(provider, { ...message, Text: 'x' })).toMatchObject({ code: 20001 });
    expect(await post(provider, { ...message, To: '0151' })).toMatchObject({ code: 21211 });
    expect(await post(provider, { ...message, From: '+15005550009' })).toMatchObject({ code: 21606 });
    expect(await post(provider, { ...message, From: 'whatsapp:+15005550006' })).toMatchObject({ code: 21910 });
    expect(await post(provider, message, { authToken: 'wrong' })).toMatchObject({ code: 20003, status: 401 });
    expect(await post(provider, message, { accountSid: `AC${'2'.repeat(32)}` })).toMatchObject({ code: 20404, status: 404 });
    provider.optOut(to);
    expect(await post(provider, message)).toMatchObject({ code: 21610, message: 'Attempt to send to unsubscribed recipient' });
  });

  it('brings a signed form, once', async () => {
    await using provider = await new FakeTwilio(account).start();
    const seen: { readonly text: string; readonly headers: Headers }[] = [];
    await using webhook = await serveRequests(async (request) => {
      seen.push({ headers: request.headers, text: await request.text() });
      return new Response(null, { status: 500 });
    });
    const url = 'https://chat.example.com/webhook/twilio/t1';
    const tries = await provider.deliver({ MessageSid: 'SM1', Body: 'ä & b' }, { url, through: webhook.url });
    expect(tries.map(({ status }) => status)).toEqual([500]);
    const fields = Object.fromEntries(new URLSearchParams(seen[0]?.text));
    expect(fields).toMatchObject({ AccountSid: account.accountSid, Body: 'ä & b' });
    expect(seen[0]?.headers.get('x-twilio-signature')).toBe(twilioSignature(account.authToken, { url, fields }));
  });
});
