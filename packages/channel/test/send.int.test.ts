import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  botError,
  eventually,
  FakeMeta,
  FakeSlack,
  FakeTelegram,
  FakeTwilio,
  freePort,
  graphError,
  slackError,
  twilioError,
  type FakeProvider,
  type ProviderReply,
} from '@concierge/testing';
import {
  channelAdapters,
  keepTyping,
  openSender,
  renderParts,
  type ChannelSender,
  type Destination,
  type OpenBinding,
  type OutgoingMessage,
  type ProviderUrls,
} from '@concierge/channel';
import { TelegramSender } from '../src/telegram/send.ts';

const meta = { accessToken: 'meta-token', appSecret: 'app-secret', verifyToken: 'verify', phoneNumberId: '1065', pageId: '4042' };
const telegram = { botToken: '7000:telegram-token', secretToken: 'secret_token' };
const slack = { botToken: 'xoxb-token', signingSecret: 'signing', teamId: 'T1', botUserId: 'U1' };
const twilio = { accountSid: `AC${'1'.repeat(32)}`, authToken: 'twilio-token', from: '+15005550006' };

const bindings = {
  whatsapp: {
    channel: 'channel_a',
    settings: { phoneNumberId: meta.phoneNumberId, accessToken: meta.accessToken, verifyToken: 'v', appSecret: 's' },
  },
  messenger: { channel: 'channel_b', settings: { pageId: meta.pageId, accessToken: meta.accessToken, verifyToken: 'v', appSecret: 's' } },
  telegram: { channel: 'channel_c', settings: telegram },
  slack: { channel: 'channel_d', settings: slack },
  twilio: { channel: 'channel_e', settings: twilio },
} as const satisfies Record<string, OpenBinding>;
type App = keyof typeof bindings;
const apps = ['whatsapp', 'messenger', 'telegram', 'slack', 'twilio'] as const;

const places: Readonly<Record<App, Destination>> = {
  whatsapp: { to: '4930123456' },
  messenger: { to: '1423587017700273' },
  telegram: { to: '427770117' },
  slack: { to: 'D0442US94JD', thread: '1700000000.000100' },
  twilio: { to: '+4915112345678' },
};

let fakeMeta: FakeMeta;
let fakeTelegram: FakeTelegram;
let fakeSlack: FakeSlack;
let fakeTwilio: FakeTwilio;
let nowMs: number;
const signal = new AbortController().signal;

beforeEach(async () => {
  nowMs = Date.parse('2026-11-21T12:00:00Z');
  fakeMeta = await new FakeMeta({ ...meta, now: () => nowMs }).start();
  fakeTelegram = await new FakeTelegram(telegram).start();
  fakeSlack = await new FakeSlack(slack).start();
  fakeTwilio = await new FakeTwilio({ ...twilio, senders: [twilio.from, `whatsapp:${twilio.from}`] }).start();
  for (const { to } of Object.values(places)) fakeMeta.personWrites(to);
});

afterEach(async () => {
  for (const provider of [fakeMeta, fakeTelegram, fakeSlack, fakeTwilio]) await provider[Symbol.asyncDispose]();
});

function urls(): ProviderUrls {
  return { metaGraph: fakeMeta.url, telegram: fakeTelegram.url, slack: fakeSlack.url, twilio: fakeTwilio.url };
}

function connectSender(app: App, timeoutMs?: number): ChannelSender {
  return openSender(bindings[app], { urls: urls(), ...(timeoutMs !== undefined && { timeoutMs }) });
}

function findProvider(app: App): FakeProvider & { readonly sent: Readonly<Record<string, unknown>>[] } {
  return { whatsapp: fakeMeta, messenger: fakeMeta, telegram: fakeTelegram, slack: fakeSlack, twilio: fakeTwilio }[app];
}

function message(app: App, markdown = 'Hello **you**', more: Partial<OutgoingMessage> = {}): OutgoingMessage {
  const [part] = renderParts(markdown, channelAdapters[bindings[app].channel].rulesFor({}));
  if (part === undefined) throw new Error('Nothing to send.');
  return { ...places[app], part, form: 'formatted', ...more };
}

describe('a message', () => {
  it('goes out as WhatsApp wants it', async () => {
    const answer = message('whatsapp', 'Hello **you**', { replyTo: 'wamid.IN', reference: 'm_1' });
    const outcome = await connectSender('whatsapp').send(answer, signal);
    expect(outcome).toEqual({ kind: 'sent', providerMessageId: expect.stringMatching(/^wamid\./u) });
    expect(fakeMeta.sent).toEqual([
      {
        messaging_product: 'whatsapp',
        recipient_type: 'individual',
        to: '4930123456',
        type: 'text',
        text: { body: 'Hello *you*', preview_url: false },
        context: { message_id: 'wamid.IN' },
        biz_opaque_callback_data: 'm_1',
      },
    ]);
  });

  it('goes to a contact of WhatsApp who has no number but a name', async () => {
    const person = 'US.13491208655302741918';
    fakeMeta.personWrites(person);
    await connectSender('whatsapp').send(message('whatsapp', 'Hi', { to: person }), signal);
    expect(fakeMeta.sent[0]).toMatchObject({ recipient: person });
    expect(fakeMeta.sent[0]).not.toHaveProperty('to');
  });

  it('goes out as Messenger wants it', async () => {
    const outcome = await connectSender('messenger').send(message('messenger', 'Hello **you**', { reference: 'm_1' }), signal);
    expect(outcome).toEqual({ kind: 'sent', providerMessageId: expect.stringMatching(/^m_/u) });
    const expected = {
      recipient: { id: places.messenger.to },
      messaging_type: 'RESPONSE',
      message: { text: 'Hello you', metadata: 'm_1' },
    };
    expect(fakeMeta.sent).toEqual([expected]);
  });

  it('goes out as Telegram wants it, into its topic', async () => {
    const outcome = await connectSender('telegram').send(
      message('telegram', 'Hello **you** & all', { thread: '7', replyTo: `${places.telegram.to}/55` }),
      signal,
    );
    expect(outcome).toEqual({ kind: 'sent', providerMessageId: '1001' });
    expect(fakeTelegram.sent).toEqual([
      {
        chat_id: 427_770_117,
        message_thread_id: 7,
        text: 'Hello <b>you</b> &amp; all',
        parse_mode: 'HTML',
        link_preview_options: { is_disabled: true },
        reply_parameters: { message_id: 55, allow_sending_without_reply: true },
      },
    ]);
  });

  it('answers the very message that Telegram delivered from a group, as its adapter names it', async () => {
    const chat = { id: -1_001_234_567_890, type: 'supergroup', is_forum: true, title: 'Shop' };
    const update = {
      update_id: 1,
      message: {
        message_id: 4242,
        message_thread_id: 7,
        is_topic_message: true,
        from: { id: 5, is_bot: false, first_name: 'Ann' },
        chat,
        date: 1_750_000_000,
        text: '@shop_bot hello',
        entities: [{ type: 'mention', offset: 0, length: 9 }],
      },
    };
    const delivery = channelAdapters.channel_c.parse(Buffer.from(JSON.stringify(update)), { ...telegram, botUsername: 'shop_bot' });
    const [heard] = delivery.kind === 'items' ? delivery.items : [];
    if (heard?.kind !== 'message') throw new Error('No message was read.');
    const { messageRef, conversation } = heard;
    const place = { to: conversation.id, thread: conversation.threadId ?? '', replyTo: messageRef };
    expect(await connectSender('telegram').send(message('telegram', 'Hello', place), signal)).toMatchObject({ kind: 'sent' });
    expect(fakeTelegram.sent).toMatchObject([{ chat_id: chat.id, message_thread_id: 7, reply_parameters: { message_id: 4242 } }]);
  });

  it('names no message of Telegram where the group has another number by now: there that is another message', async () => {
    await connectSender('telegram').send(message('telegram', 'Hello', { to: '-1001234567890', replyTo: '-5/55' }), signal);
    expect(fakeTelegram.sent[0]).not.toHaveProperty('reply_parameters');
  });

  it('goes to a group of WhatsApp as to a group', async () => {
    const group = 'Y2FwaV9ncm91cDoxODA1NTU1MDE3MjoxMjAzNjMyMjI3NzE5NjMwNjcZD';
    fakeMeta.personWrites(group);
    expect(await connectSender('whatsapp').send(message('whatsapp', 'Hi', { to: group }), signal)).toMatchObject({ kind: 'sent' });
    expect(fakeMeta.sent[0]).toMatchObject({ recipient_type: 'group', to: group });
  });

  it('goes out as Slack wants it, into its thread', async () => {
    const outcome = await connectSender('slack').send(message('slack', 'Hello **you** <!channel>'), signal);
    expect(outcome).toEqual({ kind: 'sent', providerMessageId: expect.stringMatching(/^\d+\.\d+$/u) });
    expect(fakeSlack.sent).toEqual([
      {
        channel: 'D0442US94JD',
        thread_ts: '1700000000.000100',
        text: 'Hello *you* &lt;!channel&gt;',
        unfurl_links: false,
        unfurl_media: false,
      },
    ]);
  });

  it('goes out as Twilio wants it, with the address for its receipts', async () => {
    const sender = openSender(bindings.twilio, { urls: urls(), webhookUrl: 'https://chat.example.com/webhook/twilio/t1' });
    const outcome = await sender.send(message('twilio', 'Hello **you**', { reference: 'm_1.0' }), signal);
    expect(outcome).toEqual({ kind: 'sent', providerMessageId: expect.stringMatching(/^SM/u) });
    const StatusCallback = 'https://chat.example.com/webhook/twilio/t1?mark=m_1.0';
    expect(fakeTwilio.sent).toEqual([{ To: '+4915112345678', From: twilio.from, Body: 'Hello you', StatusCallback }]);
  });

  it.each(apps)('of any length is taken by %s part by part', async (app) => {
    const markdown = `# Long\n\n${'Some **bold** words & [links](https://e.example/?a=1&b=2).\n\n'.repeat(150)}\n\`\`\`js\n${'if (a < b) c();\n'.repeat(400)}\`\`\``;
    const parts = renderParts(markdown, channelAdapters[bindings[app].channel].rulesFor({}));
    expect(parts.length).toBeGreaterThan(2);
    for (const part of parts) {
      for (const form of ['formatted', 'plain'] as const) {
        expect(await connectSender(app).send({ ...places[app], part, form }, signal)).toMatchObject({ kind: 'sent' });
      }
    }
  });

  it('whose markup Telegram does not understand can go out again as plain text', async () => {
    const broken = message('telegram', 'x', { part: { text: '<b>half', plain: 'half' } });
    expect(await connectSender('telegram').send(broken, signal)).toMatchObject({ kind: 'resend_plain' });
    expect(await connectSender('telegram').send({ ...broken, form: 'plain' }, signal)).toMatchObject({ kind: 'sent' });
    expect(fakeTelegram.sent[1]).not.toHaveProperty('parse_mode');
  });

  it('to a group of Telegram that moved learns where to', async () => {
    fakeTelegram.migrate(-5, -1_001_234_567_890);
    expect(await connectSender('telegram').send(message('telegram', 'x', { to: '-5' }), signal)).toMatchObject({
      kind: 'resend_to',
      to: '-1001234567890',
    });
  });

  it('to a contact of Twilio who wrote STOP is over', async () => {
    fakeTwilio.optOut(places.twilio.to);
    expect(await connectSender('twilio').send(message('twilio'), signal)).toMatchObject({ kind: 'recipient_failed', code: '21610' });
  });

  it('to a contact who blocked the bot is over', async () => {
    fakeTelegram.block(427_770_117);
    expect(await connectSender('telegram').send(message('telegram'), signal)).toMatchObject({ kind: 'recipient_failed', code: '403' });
  });

  it.each(['whatsapp', 'messenger'] as const)('of %s finds the window closed a day after the contact wrote', async (app) => {
    nowMs += 24 * 60 * 60_000;
    expect(await connectSender(app).send(message(app), signal)).toMatchObject({ kind: 'window_closed' });
  });

  it('that is a template goes through a closed window', async () => {
    const sender = connectSender('whatsapp');
    const template = { to: '4915199999', name: 'order_ready', language: 'de', bodyParameters: ['Anna'] };
    expect(await sender.sendTemplate?.(template, signal)).toMatchObject({ kind: 'sent' });
    expect(fakeMeta.sent[0]).toMatchObject({
      type: 'template',
      template: {
        name: 'order_ready',
        language: { code: 'de' },
        components: [{ type: 'body', parameters: [{ type: 'text', text: 'Anna' }] }],
      },
    });
  });

  it('too many to one contact of WhatsApp meet the pair limit, and go again when it has room', async () => {
    const sender = connectSender('whatsapp');
    for (let sent = 1; sent <= 45; sent += 1) expect(await sender.send(message('whatsapp'), signal)).toMatchObject({ kind: 'sent' });
    expect(await sender.send(message('whatsapp'), signal)).toMatchObject({ kind: 'retry', backoff: 'pair' });
    nowMs += 45 * 6000;
    fakeMeta.personWrites(places.whatsapp.to);
    expect(await sender.send(message('whatsapp'), signal)).toMatchObject({ kind: 'sent' });
  });
});

const busy: Readonly<Record<App, ProviderReply>> = {
  whatsapp: graphError(130429, 'Rate limit hit', { status: 429 }),
  messenger: graphError(613, 'Calls to this api have exceeded the rate limit.'),
  telegram: botError(429, 'Too Many Requests: retry after 14', { retry_after: 14 }),
  slack: { status: 429, headers: { 'retry-after': '14' }, body: { ok: false, error: 'ratelimited' } },
  twilio: { ...twilioError(20429, 'Too Many Requests', { status: 429 }), headers: { 'retry-after': '14' } },
};

const strangers: Readonly<Record<App, ProviderReply>> = {
  whatsapp: graphError(190, 'Session has expired', { status: 401 }),
  messenger: graphError(190, 'Error validating access token'),
  telegram: botError(401, 'Unauthorized'),
  slack: slackError('token_revoked'),
  twilio: twilioError(20003, 'Authenticate', { status: 401 }),
};

describe.each(apps)('%s', (app) => {
  it('asks to wait, and how long where it knows', async () => {
    findProvider(app).failSends(busy[app], { status: 502, body: '<html>502 Bad Gateway</html>' });
    const hint = app === 'telegram' || app === 'slack' || app === 'twilio' ? { afterMs: 14_000 } : {};
    expect(await connectSender(app).send(message(app), signal)).toMatchObject({ kind: 'retry', ...hint });
    expect(await connectSender(app).send(message(app), signal)).toMatchObject({ kind: 'retry', code: 'http_502' });
  });

  it('refuses credentials for good', async () => {
    findProvider(app).failSends(strangers[app]);
    expect(await connectSender(app).send(message(app), signal)).toMatchObject({ kind: 'binding_failed' });
  });

  it('leaves it unknown when the connection broke or time ran out after the message was taken', async () => {
    findProvider(app).failSends('cut', 'hang');
    expect(await connectSender(app).send(message(app), signal)).toMatchObject({ kind: 'unknown' });
    expect(findProvider(app).sent).toHaveLength(1);
    // Long enough for the message to get there.
    expect(await connectSender(app, 1500).send(message(app), signal)).toMatchObject({ kind: 'unknown' });
  });

  it('knows that it was sent when the answer arrived while this process stood still', async () => {
    findProvider(app).failSends('stall');
    expect(await connectSender(app, 1500).send(message(app), signal)).toMatchObject({ kind: 'sent' });
  });

  it('leaves it unknown when the sender stops in the middle', async () => {
    const stop = new AbortController();
    findProvider(app).failSends('hang');
    const outcome = connectSender(app).send(message(app), stop.signal);
    await eventually(() => findProvider(app).sent.length === 1);
    stop.abort(new Error('Stopping.'));
    expect(await outcome).toMatchObject({ kind: 'unknown' });
    await expect(connectSender(app).send(message(app), stop.signal)).rejects.toThrow('Stopping.');
  });

  it('leaves it unknown when a 200 is empty', async () => {
    findProvider(app).failSends({ body: 'OK' });
    expect(await connectSender(app).send(message(app), signal)).toMatchObject({ kind: 'unknown' });
  });

  it('follows no redirect with a token', async () => {
    findProvider(app).failSends({ status: 307, headers: { location: `${fakeMeta.origin}/elsewhere` }, body: '' });
    expect(await connectSender(app).send(message(app), signal)).toMatchObject({ kind: 'refused', code: 'http_307' });
    expect(fakeMeta.callsTo('/elsewhere')).toEqual([]);
  });

  it('is tried again when it could not be reached at all, and reports that without its address', async () => {
    const nobody = `http://127.0.0.1:${String(await freePort())}`;
    const outcome = await openSender(bindings[app], { urls: { metaGraph: nobody, telegram: nobody, slack: nobody, twilio: nobody } }).send(
      message(app),
      signal,
    );
    expect(outcome).toMatchObject({ kind: 'retry', code: 'unreachable' });
    expect(JSON.stringify(outcome)).not.toMatch(/token|127\.0\.0\.1/u);
  });

  it('reports whether credentials are good', async () => {
    expect(await connectSender(app).checkCredentials(signal)).toMatchObject({ state: 'valid' });
    const { channel, settings } = bindings[app];
    const secret = ['accessToken', 'authToken'].find((name) => name in settings) ?? 'botToken';
    const wrong = { ...settings, [secret]: 'wrong-token' };
    // eslint-disable-next-line typescript/no-unsafe-type-assertion -- the settings of the same channel, with another token
    const stranger = openSender({ channel, settings: wrong } as OpenBinding, { urls: urls() });
    expect(await stranger.checkCredentials(signal)).toMatchObject({ state: 'refused' });
    expect(JSON.stringify(await stranger.checkCredentials(signal))).not.toContain('wrong-token');
  });

  it('shows typing again and again until the signal ends it', async () => {
    const stop = new AbortController();
    const sender = connectSender(app);
    let shown = 0;
    const counted = {
      typingRepeatMs: 1,
      showTyping: async (...request: Parameters<ChannelSender['showTyping']>) => {
        shown += 1;
        if (shown === 3) stop.abort();
        return sender.showTyping(...request);
      },
    };
    const before = findProvider(app).calls.length;
    await keepTyping(counted, { ...places[app], inboundMessageId: 'wamid.IN' }, stop.signal);
    expect(findProvider(app).calls.length - before).toBe(app === 'twilio' ? 0 : 2);
    expect(findProvider(app).sent).toEqual([]);
  });
});

describe('a refusal that concerns one contact or one conversation', () => {
  it.each([
    ['messenger', 'blocked the page', graphError(200, "This person isn't receiving messages from you right now.", { subcode: 1_545_041 })],
    ['messenger', 'turned messages off', graphError(10, 'This person cannot be messaged', { subcode: 2_018_108 })],
    ['messenger', 'refuses with a subcode that no table names', graphError(200, 'Not now', { subcode: 2_018_999 })],
    ['slack', 'is in a channel that the bot is not a member of', slackError('no_permission')],
    ['slack', 'is where the bot may not write', slackError('access_denied')],
    ['slack', 'is where no member may write', slackError('ekm_access_denied')],
  ] as const)('does not concern the credentials: on %s, a contact who %s', async (app, _what, refusal) => {
    findProvider(app).failSends(refusal);
    expect(await connectSender(app).send(message(app), signal)).toMatchObject({ kind: 'recipient_failed' });
  });

  it.each([
    ['messenger', graphError(200, 'Requires pages_messaging permission')],
    ['messenger', graphError(10, 'Application does not have permission for this action')],
    ['messenger', graphError(200, 'Cannot message users who are not admins', { subcode: 2_018_028 })],
    ['slack', slackError('missing_scope')],
    ['slack', slackError('token_expired')],
    ['slack', slackError('account_inactive')],
  ] as const)('is not one that concerns all: %s', async (app, refusal) => {
    findProvider(app).failSends(refusal);
    expect(await connectSender(app).send(message(app), signal)).toMatchObject({ kind: 'binding_failed' });
  });
});

describe('credentials of another account', () => {
  it('are distinguished from good ones', async () => {
    const settings = { ...slack, teamId: 'T2' };
    expect(await openSender({ channel: 'channel_d', settings }, { urls: urls() }).checkCredentials(signal)).toMatchObject({
      state: 'mismatch',
    });
    const bot = { ...slack, botUserId: 'U2' };
    expect(await openSender({ channel: 'channel_d', settings: bot }, { urls: urls() }).checkCredentials(signal)).toMatchObject({
      state: 'mismatch',
    });
  });
});

describe('good credentials', () => {
  it('return what inbound messages are read by, as far as the bot may know', async () => {
    const checked = async (sender: ChannelSender) => sender.checkCredentials(signal);
    expect(await checked(connectSender('telegram'))).toMatchObject({ identifiers: { botUsername: 'corner_shop_bot' } });
    expect(await checked(connectSender('slack'))).toMatchObject({ account: 'Corner Shop', identifiers: { appId: 'A0FAKE' } });
    await using silent = await new FakeSlack({ ...slack, scopes: [] }).start();
    const withoutScope = openSender(bindings.slack, { urls: { ...urls(), slack: silent.url } });
    expect(await checked(withoutScope)).toEqual({ state: 'valid', account: 'Corner Shop' });
  });
});

describe('the webhook of Telegram', () => {
  it('is found and removed, and one that leads elsewhere is left', async () => {
    const sender = new TelegramSender(telegram, { urls: urls() });
    const url = 'https://concierge.example/webhook/telegram/t1';
    expect(await sender.findWebhook(signal)).toEqual({ url: '', waitingUpdates: 0, lastError: undefined, missingUpdates: [] });
    await sender.registerWebhook({ url, secretToken: telegram.secretToken }, signal);
    expect(await sender.findWebhook(signal)).toMatchObject({ url, missingUpdates: [] });
    expect(await sender.removeWebhook(['https://elsewhere.example'], signal)).toBe(true);
    expect(fakeTelegram.webhook).toBeDefined();
    expect(await sender.removeWebhook([url], signal)).toBe(true);
    expect(fakeTelegram.webhook).toBeUndefined();
    const stranger = new TelegramSender({ botToken: '1:wrong-token' }, { urls: urls() });
    expect(await stranger.findWebhook(signal)).toEqual({ failure: 'refused', reason: 'Unauthorized' });
    expect(await stranger.removeWebhook([url], signal)).toBe(false);
  });

  it('is registered with its secret and the updates that are read', async () => {
    const sender = new TelegramSender(telegram, { urls: urls() });
    const url = 'https://concierge.example/webhook/telegram/t1';
    expect(await sender.registerWebhook({ url, secretToken: telegram.secretToken }, signal)).toMatchObject({ state: 'valid' });
    expect(fakeTelegram.webhook).toMatchObject({ url, secret_token: telegram.secretToken });
    expect(await sender.registerWebhook({ url, secretToken: 'no spaces' }, signal)).toMatchObject({ state: 'refused' });
  });
});
