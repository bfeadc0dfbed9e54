import { createHmac } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import type { ChannelSettings } from '@concierge/contract';
import { channelAdapters, mediaAccess, type Delivery, type InboundItem } from './index.ts';

const meta = { accessToken: 'token', verifyToken: 'verify', appSecret: 'secret' };
const settings: ChannelSettings = {
  channel_a: { phoneNumberId: '100', ...meta },
  channel_b: { pageId: '200', instagramId: '201', ...meta },
  channel_c: { botToken: '300:token', botUsername: 'Shop_Bot', secretToken: 'secret-token' },
  channel_d: { botToken: 'token', signingSecret: 'secret', teamId: 'T1', botUserId: 'UBOT', appId: 'A1' },
  channel_e: { accountSid: `AC${'0'.repeat(32)}`, authToken: 'token', from: '+15005550006' },
};

const nowMs = 1_760_000_000_000;

function bytes(json: unknown): Buffer {
  return Buffer.from(typeof json === 'string' ? json : JSON.stringify(json));
}

function items(delivery: Delivery): readonly InboundItem[] {
  return delivery.kind === 'items' ? delivery.items : [];
}

const parse = {
  whatsApp: (json: unknown) => items(channelAdapters.channel_a.parse(bytes(json), settings.channel_a)),
  messenger: (json: unknown) => items(channelAdapters.channel_b.parse(bytes(json), settings.channel_b)),
  telegram: (json: unknown) => items(channelAdapters.channel_c.parse(bytes(json), settings.channel_c)),
  slack: (json: unknown) => items(channelAdapters.channel_d.parse(bytes(json), settings.channel_d)),
};

function whatsAppValue(value: object, phoneNumberId = '100'): object {
  const metadata = { phone_number_id: phoneNumberId };
  return {
    object: 'whatsapp_business_account',
    entry: [{ id: '1', changes: [{ field: 'messages', value: { messaging_product: 'whatsapp', metadata, ...value } }] }],
  };
}

const text = (id: string, body: string, from: object = { from: '491' }): object => ({
  id,
  ...from,
  timestamp: '1750000000',
  type: 'text',
  text: { body },
});

function messengerItems(...messaging: readonly object[]): object {
  return { object: 'page', entry: [{ id: '200', time: 1, messaging }] };
}

function telegramMessage(fields: object): object {
  return {
    update_id: 7,
    message: { message_id: 1, from: { id: 5, is_bot: false, first_name: 'Ada' }, chat: { id: 5, type: 'private' }, date: 1, ...fields },
  };
}

const group = { chat: { id: -100, type: 'supergroup' } };

function slackEvent(event: object, envelope: object = {}): object {
  return { type: 'event_callback', team_id: 'T1', api_app_id: 'A1', event_id: 'Ev1', event, ...envelope };
}

const slackText = { type: 'message', channel: 'C1', channel_type: 'channel', user: 'U1', ts: '1700000000.000100' };

describe('WhatsApp', () => {
  it('identifies a sender by the id of the business, and the telephone number as an alias', () => {
    const contacts = [
      { wa_id: '492', user_id: 'DE.2' },
      { wa_id: '491', user_id: 'DE.1', profile: { name: 'Ada' } },
    ];
    const [first] = parse.whatsApp(whatsAppValue({ contacts, messages: [text('m1', 'hello')] }));
    expect(first).toMatchObject({
      sender: { id: 'DE.1', aliases: ['491'], displayName: 'Ada' },
      conversation: { id: 'DE.1', isGroup: false },
    });
  });

  it('answers people who show no telephone number', () => {
    const messages = [text('m1', 'hello', { from_user_id: 'DE.1' }), text('m2', 'again', {})];
    expect(parse.whatsApp(whatsAppValue({ contacts: [{ user_id: 'DE.1' }], messages }))).toMatchObject([
      { kind: 'message', sender: { id: 'DE.1', aliases: [] } },
      { kind: 'message', sender: { id: 'DE.1', aliases: [] } },
    ]);
    expect(parse.whatsApp(whatsAppValue({ messages: [text('m1', 'hello', {})] }))).toMatchObject([
      { kind: 'ignored', reason: 'no_sender' },
    ]);
  });

  it('reads each item by itself', () => {
    const messages = [text('m1', 'one'), 5, { id: 'm2', from: '491', type: 'constructor' }, text('m1', 'one'), text('m3', 'three')];
    const statuses = [{ id: 'out', status: 'failed', timestamp: '1750000000', recipient_id: '491', errors: [{ code: 131047 }] }];
    expect(parse.whatsApp(whatsAppValue({ messages, statuses }))).toMatchObject([
      { kind: 'message', providerMessageId: 'm1' },
      { kind: 'ignored', reason: 'unreadable' },
      { kind: 'ignored', reason: 'other_event', ref: 'constructor' },
      { kind: 'ignored', reason: 'duplicate' },
      { kind: 'message', providerMessageId: 'm3' },
      { kind: 'receipt', messageId: 'out', state: 'failed', atMs: 1_750_000_000_000, errorCodes: ['131047'] },
    ]);
  });

  it('is not confused by keys that objects have anyway', () => {
    const body = JSON.stringify(whatsAppValue({ messages: [text('m1', 'hello')] })).replace(
      '{"id":"m1"',
      '{"__proto__":{"type":"image"},"id":"m1"',
    );
    expect(body).toContain('__proto__');
    expect(parse.whatsApp(body)).toMatchObject([{ kind: 'message', text: 'hello' }]);
  });

  it('leaves items of other numbers alone, those of the same body too', () => {
    const [ours] = [whatsAppValue({ messages: [text('m1', 'ours')] })];
    const theirs = whatsAppValue({ messages: [text('m2', 'theirs')] }, '999');
    const entry = [ours, theirs].flatMap((body) => ('entry' in body && Array.isArray(body.entry) ? (body.entry as unknown[]) : []));
    expect(parse.whatsApp({ object: 'whatsapp_business_account', entry })).toMatchObject([
      { kind: 'message', text: 'ours' },
      { kind: 'ignored', reason: 'foreign' },
    ]);
  });

  it('follows a sender to another number, and takes back what was revoked', () => {
    const changed = { id: 'm1', from: '491', type: 'system', system: { type: 'user_changed_number', wa_id: '492' } };
    const revoked = { id: 'm2', from: '491', type: 'revoke', revoke: { original_message_id: 'm0' } };
    expect(parse.whatsApp(whatsAppValue({ messages: [changed, revoked] }))).toEqual([
      { kind: 'alias', of: 'sender', from: '491', to: '492' },
      { kind: 'retraction', providerMessageId: 'm0', messageRef: 'm0' },
    ]);
  });

  it('takes the new id of a sender who has changed it', () => {
    const value = { metadata: { phone_number_id: '100' }, user_id_update: [{ user_id: { previous: 'DE.1', current: 'DE.2' } }] };
    const body = { object: 'whatsapp_business_account', entry: [{ changes: [{ field: 'user_id_update', value }] }] };
    expect(parse.whatsApp(body)).toEqual([{ kind: 'alias', of: 'sender', from: 'DE.1', to: 'DE.2' }]);
  });

  it('reads what is no text: cards, orders, voice messages, forms', () => {
    const common = { from: '491', timestamp: '1750000000' };
    const messages = [
      { ...common, id: 'm1', type: 'contacts', contacts: [{ name: { formatted_name: 'Bob' } }] },
      { ...common, id: 'm2', type: 'order', order: { catalog_id: 'c', product_items: [{ product_retailer_id: 'p', quantity: 2 }] } },
      { ...common, id: 'm3', type: 'audio', audio: { id: 'f', mime_type: 'audio/ogg', voice: true } },
      { ...common, id: 'm4', type: 'interactive', interactive: { nfm_reply: { name: 'flow', response_json: '{"day":1}' } } },
      { ...common, id: 'm5', type: 'button', button: { payload: 'yes', text: 'Yes' } },
    ];
    expect(parse.whatsApp(whatsAppValue({ messages }))).toMatchObject([
      { cards: ['Bob'], text: null },
      { order: { catalogId: 'c', items: [{ productId: 'p', quantity: 2 }] } },
      { media: [{ kind: 'voice', id: 'f' }] },
      { text: '{"day":1}', choice: { kind: 'nfm_reply', id: 'flow' } },
      { text: 'Yes', choice: { kind: 'button', id: 'yes' } },
    ]);
  });
});

describe('Messenger', () => {
  const from = { sender: { id: '9' }, recipient: { id: '200' }, timestamp: 1 };

  it('gives on only text that a database can store', () => {
    const message = { mid: 'm1', text: 'a\u0000b\uD800c😀' };
    expect(parse.messenger(messengerItems({ ...from, message }))).toMatchObject([{ text: 'abc😀' }]);
  });

  it('keeps every digit of an id, written as a number or not', () => {
    const body = JSON.stringify(messengerItems({ ...from, message: { mid: 'm1', text: 'x' } })).replace('"9"', '99999999999999999999');
    expect(parse.messenger(body)).toMatchObject([{ sender: { id: '99999999999999999999' } }]);
  });

  it('finds the place where both coordinates are zero', () => {
    const attachments = [{ type: 'location', payload: { coordinates: { lat: 0, long: 0 } } }];
    expect(parse.messenger(messengerItems({ ...from, message: { mid: 'm1', attachments } }))).toMatchObject([
      { kind: 'message', text: null, location: { latitude: 0, longitude: 0 } },
    ]);
  });

  it('reads receipts by message and by time', () => {
    const delivered = { ...from, delivery: { mids: ['a', 'b'], watermark: 5 } };
    const read = { ...from, read: { watermark: 6 } };
    expect(parse.messenger(messengerItems(delivered, read))).toMatchObject([
      { kind: 'receipt', messageId: 'a', state: 'delivered' },
      { kind: 'receipt', messageId: 'b', state: 'delivered' },
      { kind: 'receipt', messageId: null, upToMs: 6, state: 'read' },
    ]);
  });

  it('leaves other pages, echoes, edits and people without an id alone', () => {
    const foreign = { object: 'page', entry: [{ id: '999', messaging: [{ ...from, message: { mid: 'm', text: 'x' } }] }] };
    expect(parse.messenger(foreign)).toMatchObject([{ reason: 'foreign' }]);
    expect(
      parse.messenger(
        messengerItems(
          { ...from, sender: { id: '200' }, message: { mid: 'm', text: 'x' } },
          { ...from, message: { mid: 'm', text: 'x', is_echo: true } },
          { ...from, message_edit: { mid: 'm', text: 'y', num_edit: 1 } },
          { ...from, sender: { user_ref: 'r' }, message: { mid: 'm', text: 'x' } },
        ),
      ),
    ).toMatchObject([{ reason: 'echo' }, { reason: 'echo' }, { reason: 'edit' }, { reason: 'no_sender' }]);
  });
});

describe('Telegram', () => {
  it('takes a pressed button from the sender who pressed it, and notes that it waits for an acknowledgement', () => {
    const message = { message_id: 3, from: { id: 300, is_bot: true }, chat: { id: 5, type: 'private' }, date: 1 };
    const update = { update_id: 8, callback_query: { id: 'q', from: { id: 5, is_bot: false, first_name: 'Ada' }, data: 'yes', message } };
    expect(parse.telegram(update)).toMatchObject([
      { kind: 'callback', callbackId: 'q' },
      { kind: 'message', sender: { id: '5', displayName: 'Ada' }, text: 'yes', messageRef: '5/3' },
    ]);
  });

  it('takes the largest size of a picture, and an animation once', () => {
    const photo = [
      { file_id: 's', width: 90, height: 60 },
      { file_id: 'l', width: 900, height: 600 },
      { file_id: 'm', width: 320, height: 200 },
    ];
    expect(parse.telegram(telegramMessage({ photo, caption: 'look' }))).toMatchObject([
      { text: 'look', media: [{ kind: 'image', id: 'l' }] },
    ]);
    const file = { file_id: 'a', mime_type: 'video/mp4' };
    const [animated] = parse.telegram(telegramMessage({ animation: file, document: file }));
    expect(animated).toMatchObject({ media: [{ kind: 'animation', id: 'a' }] });
    expect(animated?.kind === 'message' ? animated.media : []).toHaveLength(1);
  });

  it.each([
    ['its name', { text: 'hi @SHOP_bot', entities: [{ type: 'mention', offset: 3, length: 9 }] }],
    ['a command with its name', { text: '/help@shop_bot', entities: [{ type: 'bot_command', offset: 0, length: 14 }] }],
    [
      'its name in a caption',
      {
        photo: [{ file_id: 'p', width: 1, height: 1 }],
        caption: '@shop_bot',
        caption_entities: [{ type: 'mention', offset: 0, length: 9 }],
      },
    ],
    ['a mention without a user name', { text: 'Shop', entities: [{ type: 'text_mention', offset: 0, length: 4, user: { id: 300 } }] }],
    ['a reply to it', { text: 'and?', reply_to_message: { message_id: 2, from: { id: 300 } } }],
  ])('is addressed in a group by %s', (_by, fields) => {
    expect(parse.telegram(telegramMessage({ ...group, ...fields }))).toMatchObject([
      { kind: 'message', conversation: { id: '-100', isGroup: true } },
    ]);
  });

  it.each([
    ['nobody', { text: 'hello' }],
    ['another bot', { text: '/help@other_bot', entities: [{ type: 'bot_command', offset: 0, length: 15 }] }],
    ['no bot by name', { text: '/help', entities: [{ type: 'bot_command', offset: 0, length: 5 }] }],
    [
      'a topic that it opened',
      { text: 'x', is_topic_message: true, message_thread_id: 2, reply_to_message: { message_id: 2, from: { id: 300 } } },
    ],
  ])('is not addressed in a group by what addresses %s', (_whom, fields) => {
    expect(parse.telegram(telegramMessage({ ...group, ...fields }))).toMatchObject([{ kind: 'ignored', reason: 'not_addressed' }]);
  });

  it.each([209, -1])(
    'is not addressed by what covers more than a name: many of those would cost the square of the text (length %d)',
    (length) => {
      const text = `${'x'.repeat(200)}@shop_bot${length < 0 ? ' ' : ''}`;
      const entities = [{ type: 'mention', offset: 0, length }];
      expect(parse.telegram(telegramMessage({ ...group, text, entities }))).toMatchObject([{ kind: 'ignored', reason: 'not_addressed' }]);
    },
  );

  it('answers an administrator who writes as the group, and no other bot', () => {
    const anonymous = { from: { id: 1087968824, is_bot: true, first_name: 'Group' }, sender_chat: { id: -100, title: 'Team' } };
    const named = { text: '@shop_bot hi', entities: [{ type: 'mention', offset: 0, length: 9 }] };
    expect(parse.telegram(telegramMessage({ ...group, ...anonymous, ...named }))).toMatchObject([
      { sender: { id: '-100', displayName: 'Team' } },
    ]);
    expect(parse.telegram(telegramMessage({ from: { id: 6, is_bot: true }, text: 'hi' }))).toMatchObject([{ reason: 'from_bot' }]);
  });

  it('answers into a topic of a forum', () => {
    const topic = {
      ...group,
      is_topic_message: true,
      message_thread_id: 55,
      text: 'x',
      reply_to_message: { message_id: 9, from: { id: 300 } },
    };
    expect(parse.telegram(telegramMessage(topic))).toMatchObject([{ conversation: { threadId: '55' }, replyTo: '9' }]);
  });
});

describe('Slack', () => {
  it('knows both events of one mention as one message', () => {
    const said = { ...slackText, text: '<@UBOT> is &lt;b&gt; in <#C2|general>? see <https://a.example/?x=1&amp;y=2|this>' };
    const [mention] = parse.slack(slackEvent({ ...said, type: 'app_mention', channel_type: undefined }));
    const [message] = parse.slack(slackEvent(said, { event_id: 'Ev2' }));
    expect(message).toMatchObject({
      text: 'is <b> in #general? see this (https://a.example/?x=1&y=2)',
      providerMessageId: 'T1:C1:1700000000.000100',
    });
    expect({ ...mention, eventId: null }).toEqual({ ...message, eventId: null });
  });

  it.each([
    ['bots', { ...slackText, text: '<@UBOT> hi', bot_id: 'B1' }, 'from_bot'],
    ['the bot itself', { ...slackText, user: 'UBOT', text: 'hi', parent_user_id: 'UBOT' }, 'from_bot'],
    ['Slack', { ...slackText, user: 'USLACKBOT', text: '<@UBOT>' }, 'from_bot'],
    ['an edit', { ...slackText, subtype: 'message_changed' }, 'edit'],
    ['a subtype that every object has', { ...slackText, text: '<@UBOT> x', subtype: 'toString' }, 'service_message'],
  ])('ignores %s', (_who, event, reason) => {
    expect(parse.slack(slackEvent(event))).toMatchObject([{ kind: 'ignored', reason }]);
  });

  it('leaves other workspaces and other apps alone, and knows its workspace within an organisation', () => {
    const event = { ...slackText, text: '<@UBOT> x' };
    expect(parse.slack(slackEvent(event, { team_id: 'T2' }))).toMatchObject([{ reason: 'foreign' }]);
    expect(parse.slack(slackEvent(event, { api_app_id: 'A2' }))).toMatchObject([{ reason: 'foreign' }]);
    expect(parse.slack(slackEvent(event, { team_id: 'E1', context_team_id: 'T1' }))).toMatchObject([{ kind: 'message' }]);
  });

  it('is disconnected when the bot loses its token, not when a user does', () => {
    expect(parse.slack(slackEvent({ type: 'app_uninstalled' }))).toEqual([{ kind: 'revocation', reason: 'app_uninstalled' }]);
    expect(parse.slack(slackEvent({ type: 'tokens_revoked', tokens: { oauth: ['U1'] } }))).toMatchObject([{ kind: 'ignored' }]);
  });

  it('reads buttons and commands, which come as forms', () => {
    const pressed = {
      type: 'block_actions',
      api_app_id: 'A1',
      team: { id: 'T1' },
      user: { id: 'U1', name: 'ada' },
      channel: { id: 'D1' },
      message: { ts: '1.1' },
      actions: [{ action_id: 'a', action_ts: '2.2', value: 'yes', text: { text: 'Yes' } }],
    };
    expect(parse.slack(new URLSearchParams({ payload: JSON.stringify(pressed) }).toString())).toMatchObject([
      {
        kind: 'message',
        providerMessageId: 'action:T1:2.2:a',
        text: 'Yes',
        choice: { id: 'yes' },
        sender: { id: 'U1', displayName: 'ada' },
      },
    ]);
    const command = { team_id: 'T1', api_app_id: 'A1', user_id: 'U1', channel_id: 'C1', command: '/ask', text: 'why', trigger_id: 't' };
    expect(parse.slack(new URLSearchParams(command).toString())).toMatchObject([
      { text: '/ask why', conversation: { id: 'C1', isGroup: true } },
    ]);
    expect(parse.slack(new URLSearchParams({ ...command, text: ' ' }).toString())).toMatchObject([{ kind: 'ignored', reason: 'empty' }]);
    expect(parse.slack(new URLSearchParams({ ...command, team_id: 'T2' }).toString())).toMatchObject([{ reason: 'foreign' }]);
  });

  it('takes files only from Slack', () => {
    const files = [
      { id: 'F1', mimetype: 'image/png', name: 'a.png', url_private_download: 'https://files.slack.com/a.png' },
      { id: 'F2', mimetype: 'image/png', url_private: 'https://slack.com.example/a.png' },
      { id: 'F3', is_external: true, url_private: 'https://files.slack.com/a.png' },
    ];
    expect(parse.slack(slackEvent({ ...slackText, channel_type: 'im', subtype: 'file_share', files }))).toMatchObject([
      {
        text: null,
        media: [
          { kind: 'image', id: 'F1', url: 'https://files.slack.com/a.png' },
          { id: 'F2', url: null },
        ],
      },
    ]);
  });
});

describe('verification', () => {
  const { channel_a: whatsApp, channel_c: telegram, channel_d: slack } = channelAdapters;
  const sign = (body: string, secret: string): string => `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;

  it('accepts the escaped form of a body that came unescaped', () => {
    const signature = sign('{"a":"\\u00e4\\ud83d\\ude00"}', 'secret');
    const request = { headers: { 'X-Hub-Signature-256': signature }, nowMs };
    expect(whatsApp.verify({ ...request, body: Buffer.from('{"a":"ä😀"}') }, settings.channel_a)).toBe(true);
    expect(whatsApp.verify({ ...request, body: Buffer.from('{"a":"ö😀"}') }, settings.channel_a)).toBe(false);
    const large = `"${'ä'.repeat(40_000)}"`;
    const headers = { 'x-hub-signature-256': sign(large.replaceAll('ä', '\\u00e4'), 'secret') };
    expect(whatsApp.verify({ headers, body: Buffer.from(large), nowMs }, settings.channel_a)).toBe(false);
  });

  it.each(['', 'sha256=', 'sha256=zz', `sha256=${'é'.repeat(64)}`, `sha256=${'0'.repeat(63)}`, `sha256=${'0'.repeat(65)}`])(
    'refuses the header %j without failing',
    (header) => {
      const request = { headers: { 'x-hub-signature-256': header }, body: bytes('{}'), nowMs };
      expect(whatsApp.verify(request, settings.channel_a)).toBe(false);
    },
  );

  it('refuses everything where there is no binding, or none with a secret', () => {
    const headers = { 'x-hub-signature-256': sign('{}', ''), 'x-telegram-bot-api-secret-token': '' };
    const request = { headers, body: bytes('{}'), nowMs };
    expect(whatsApp.verify(request, undefined)).toBe(false);
    expect(whatsApp.verify(request, { ...settings.channel_a, appSecret: '' })).toBe(false);
    expect(telegram.verify(request, undefined)).toBe(false);
    expect(telegram.verify(request, { ...settings.channel_c, secretToken: '' })).toBe(false);
    const query = { 'hub.mode': 'subscribe', 'hub.challenge': 'c', 'hub.verify_token': '' };
    expect(whatsApp.handshake?.(query, undefined)).toBeUndefined();
    expect(whatsApp.handshake?.(query, { ...settings.channel_a, verifyToken: '' })).toBeUndefined();
  });

  it.each(['secret-toke', 'secret-tokenX', 'SECRET-TOKEN', ''])('refuses the token %j', (token) => {
    const request = { headers: { 'x-telegram-bot-api-secret-token': token }, body: bytes('{}'), nowMs };
    expect(telegram.verify(request, settings.channel_c)).toBe(false);
  });

  it.each([
    [0, true],
    [-300, true],
    [300, true],
    [-301, false],
    [301, false],
  ])('takes a Slack signature of %i seconds from now: %s', (offset, isTaken) => {
    const at = String(nowMs / 1000 + offset);
    const signature = `v0=${createHmac('sha256', 'secret').update(`v0:${at}:{}`).digest('hex')}`;
    const request = { headers: { 'x-slack-request-timestamp': at, 'x-slack-signature': signature }, body: bytes('{}'), nowMs };
    expect(slack.verify(request, settings.channel_d)).toBe(isTaken);
  });
});

describe('addresses of files', () => {
  it.each([
    'https://lookaside.fbsbx.com.example/x',
    'https://evil-lookaside.fbsbx.com.example/',
    'http://lookaside.fbsbx.com/x',
    'https://user@lookaside.fbsbx.com/x',
    'https://lookaside.fbsbx.com:8443/x',
    'https://169.254.169.254/latest',
    'not an address',
  ])('do not include %s', (address) => {
    expect(mediaAccess(channelAdapters.channel_a.mediaSources, address)).toBeUndefined();
  });

  it('are those of the provider, and of the operator who has moved it', () => {
    expect(mediaAccess(channelAdapters.channel_a.mediaSources, 'https://lookaside.fbsbx.com/x')).toBe('with_token');
    expect(mediaAccess(channelAdapters.channel_b.mediaSources, 'https://scontent.xx.fbcdn.net/a.jpg')).toBe('open');
    expect(mediaAccess(channelAdapters.channel_d.mediaSources, 'https://files.slack.com/x')).toBe('with_token');
    expect(mediaAccess(channelAdapters.channel_a.mediaSources, 'http://127.0.0.1:4000/media', ['http://127.0.0.1:4000'])).toBe(
      'with_token',
    );
  });

  it('get the token of the binding only where the provider asks for it', () => {
    const takesToken = Object.values(channelAdapters).map(({ mediaSources }) => mediaSources.withToken.length > 0);
    expect(takesToken).toEqual([true, false, false, true, true]);
  });
});
