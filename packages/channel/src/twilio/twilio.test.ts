import { describe, expect, it } from '@jest/globals';
import { channelDefinitions, parseChannelSettings, type TwilioSettings } from '@concierge/contract';
import { twilioSignature } from '@concierge/testing';
import twilioSdk from 'twilio';
import type { Delivery, InboundItem, WebhookRequest } from '../channel-adapter.ts';
import { renderParts } from '../outbound/render-parts.ts';
import { replyWindow } from '../outbound/sending-rules.ts';
import { twilio } from './index.ts';
import { classifyTwilioSend } from './send.ts';

const sid = (kind: string, digit: string): string => kind + digit.repeat(32);
const settings: TwilioSettings = { accountSid: sid('AC', '1'), authToken: 'auth-token', from: '+15005550006' };
const url = 'https://chat.example.com/webhook/twilio/shop';
const nowMs = Date.parse('2026-11-21T12:00:00Z');

type Fields = Readonly<Record<string, string>>;

const text: Fields = {
  MessageSid: sid('SM', 'a'),
  SmsSid: sid('SM', 'a'),
  AccountSid: settings.accountSid,
  From: '+4915112345678',
  To: '+15005550006',
  Body: 'Grüße & 1+1=2 😀',
  NumMedia: '0',
  NumSegments: '1',
  SmsStatus: 'received',
  ApiVersion: '2010-04-01',
};

function buildBody(fields: Fields): Uint8Array {
  return new TextEncoder().encode(new URLSearchParams(fields).toString());
}

function request(fields: Fields, signature: string, called: string | undefined = url): WebhookRequest {
  return { headers: { 'X-Twilio-Signature': signature }, body: buildBody(fields), url: called, nowMs };
}

function items(delivery: Delivery): readonly InboundItem[] {
  return delivery.kind === 'items' ? delivery.items : [];
}

function read(fields: Fields, binding = settings, called = url): readonly InboundItem[] {
  return items(twilio.parse(buildBody({ ...text, ...fields }), binding, called));
}

describe('a signature of Twilio', () => {
  const signature = twilioSdk.getExpectedTwilioSignature(settings.authToken, url, text);

  it('is the one that Twilio’s own library makes, and takes', () => {
    expect(twilioSdk.validateRequest(settings.authToken, signature, url, text)).toBe(true);
    expect(twilio.verify(request(text, signature), settings)).toBe(true);
    expect(twilioSignature(settings.authToken, { url, fields: text })).toBe(signature);
  });

  it.each<[string, Fields]>([
    ['an empty value', { ...text, Body: '' }],
    ['names that differ in case alone', { ...text, body: 'x', BODY: 'y', b: 'z' }],
    ['names and values beyond ASCII', { ...text, 'ä😀': 'ö\u{10FFFF}', 'a\uFFFDb': '\u0000' }],
    ['many fields', Object.fromEntries(Array.from({ length: 200 }, (_, index) => [`Field${String(index)}`, String(index)]))],
    ['none', {}],
  ])('over %s agrees with the library', (_what, fields) => {
    const made = twilioSdk.getExpectedTwilioSignature(settings.authToken, url, fields);
    expect(twilio.verify(request(fields, made), settings)).toBe(true);
    expect(twilio.verify(request({ ...fields, Extra: '1' }, made), settings)).toBe(false);
  });

  it('counts a field that is there twice once for each value, as the library does', () => {
    const twice = { MediaUrl: ['b', 'a', 'b'] };
    const made = twilioSdk.getExpectedTwilioSignature(settings.authToken, url, twice);
    const body = new TextEncoder().encode('MediaUrl=b&MediaUrl=a&MediaUrl=b');
    expect(twilioSdk.validateRequest(settings.authToken, made, url, twice)).toBe(true);
    expect(twilio.verify({ headers: { 'x-twilio-signature': made }, body, url, nowMs }, settings)).toBe(true);
  });

  it.each([
    ['https://chat.example.com/webhook/twilio/shop', 'https://chat.example.com:443/webhook/twilio/shop'],
    ['https://chat.example.com:8443/webhook/twilio/shop', 'https://chat.example.com/webhook/twilio/shop'],
    ['http://127.0.0.1/webhook/twilio/shop?mark=m_1.0', 'http://127.0.0.1:80/webhook/twilio/shop?mark=m_1.0'],
    ['https://example.com/concierge/webhook/twilio/shop', 'https://example.com/concierge/webhook/twilio/shop'],
  ])('of %s may be over %s', (called, signed) => {
    const made = twilioSdk.getExpectedTwilioSignature(settings.authToken, signed, text);
    expect(twilioSdk.validateRequest(settings.authToken, made, called, text)).toBe(true);
    expect(twilio.verify(request(text, made, called), settings)).toBe(true);
  });

  it('is refused when anything of it is another’s', () => {
    const other = twilioSdk.getExpectedTwilioSignature('other-token', url, text);
    expect(twilio.verify(request(text, other), settings)).toBe(false);
    expect(twilio.verify(request(text, signature, `${url}2`), settings)).toBe(false);
    expect(twilio.verify(request({ ...text, Body: 'changed' }, signature), settings)).toBe(false);
    expect(twilio.verify(request(text, signature.toLowerCase()), settings)).toBe(false);
    expect(twilio.verify(request(text, signature), undefined)).toBe(false);
    const empty = twilioSdk.getExpectedTwilioSignature('', url, text);
    expect(twilio.verify(request(text, empty), { ...settings, authToken: '' })).toBe(false);
    expect(twilio.verify(request(text, empty), undefined)).toBe(false);
  });

  it('is refused where PUBLIC_URL is not known, and on a body that no message has', () => {
    const withoutUrl = twilioSdk.getExpectedTwilioSignature(settings.authToken, '', text);
    expect(twilio.verify({ ...request(text, withoutUrl), url: undefined }, settings)).toBe(false);
    const large = { ...text, Body: 'x'.repeat(300_000) };
    const made = twilioSdk.getExpectedTwilioSignature(settings.authToken, url, large);
    expect(twilio.verify(request(large, made), settings)).toBe(false);
  });
});

describe('a form of Twilio', () => {
  it('is a message', () => {
    expect(read({})).toEqual([
      {
        kind: 'message',
        providerMessageId: text['MessageSid'],
        eventId: null,
        messageRef: text['MessageSid'],
        sender: { id: '+4915112345678', aliases: [], displayName: null, isExternal: false },
        conversation: { id: '+4915112345678', threadId: null, isGroup: false },
        text: 'Grüße & 1+1=2 😀',
        media: [],
        replyTo: null,
        sentAtMs: null,
      },
    ]);
  });

  it('has files, places, chosen buttons and names', () => {
    const media = {
      NumMedia: '2',
      MediaUrl0: 'https://api.twilio.com/m/ME0',
      MediaContentType0: 'image/jpeg',
      MediaUrl1: 'https://api.twilio.com/m/ME1',
    };
    expect(read({ ...media, Body: '', ProfileName: 'Ann' })).toMatchObject([
      {
        sender: { displayName: 'Ann' },
        text: null,
        media: [
          { kind: 'image', id: null, url: 'https://api.twilio.com/m/ME0', mediaType: 'image/jpeg' },
          { kind: 'document', url: 'https://api.twilio.com/m/ME1', mediaType: null },
        ],
      },
    ]);
    const place = { Latitude: '52.5163', Longitude: '-13.3777', Label: 'Gate', Address: 'Pariser Platz' };
    expect(read({ ...place, Body: '' })).toMatchObject([
      { location: { latitude: 52.5163, longitude: -13.3777, name: 'Gate', address: 'Pariser Platz' } },
    ]);
    expect(read({ Body: '', ButtonText: 'Yes', ButtonPayload: 'yes-1', OriginalRepliedMessageSid: 'SM9' })).toMatchObject([
      { text: 'Yes', choice: { kind: 'button', id: 'yes-1', title: 'Yes' }, replyTo: 'SM9' },
    ]);
    expect(read({ Body: 'First', ListId: 'l1', ListTitle: 'First' })).toMatchObject([
      { choice: { kind: 'list', id: 'l1', title: 'First' } },
    ]);
  });

  it.each<[Fields, object]>([
    [{ AccountSid: sid('AC', '2') }, { kind: 'ignored', reason: 'foreign' }],
    [{ To: '+15005550099' }, { kind: 'ignored', reason: 'foreign' }],
    [{ MessageSid: '' }, { kind: 'ignored', reason: 'no_id' }],
    [{ From: '' }, { kind: 'ignored', reason: 'no_sender' }],
    [{ Body: ' \u200B ' }, { kind: 'ignored', reason: 'empty' }],
    [
      { Latitude: 'NaN', Longitude: '1', Body: '' },
      { kind: 'ignored', reason: 'empty' },
    ],
    [
      { NumMedia: '99', Body: '' },
      { kind: 'ignored', reason: 'empty' },
    ],
    [
      { OptOutType: 'STOP', Body: 'STOP' },
      { kind: 'unreachable', conversationId: '+4915112345678' },
    ],
    [
      { OptOutType: 'START', Body: 'START' },
      { kind: 'reachable', conversationId: '+4915112345678' },
    ],
    [
      { OptOutType: 'HELP', Body: 'HELP' },
      { kind: 'ignored', reason: 'service_message' },
    ],
  ])('with %j is %j', (fields, item) => {
    expect(read(fields)).toMatchObject([item]);
  });

  it('is nothing of Twilio’s without an account', () => {
    expect(twilio.parse(new TextEncoder().encode('{"AccountSid":"x"}'), settings)).toEqual({ kind: 'malformed' });
    expect(twilio.parse(new Uint8Array(), settings)).toEqual({ kind: 'malformed' });
  });

  it('is for the binding whose messaging service it came to', () => {
    const { from: _from, ...account } = settings;
    const service = { ...account, messagingServiceSid: sid('MG', '3') };
    expect(read({ MessagingServiceSid: sid('MG', '3'), To: '+15005550099' }, service)).toMatchObject([{ kind: 'message' }]);
    expect(read({ MessagingServiceSid: sid('MG', '4') }, service)).toMatchObject([{ kind: 'ignored', reason: 'foreign' }]);
    expect(read({}, service)).toMatchObject([{ kind: 'ignored', reason: 'foreign' }]);
  });

  it.each([
    ['queued', 'ignored', undefined],
    ['sending', 'ignored', undefined],
    ['canceled', 'ignored', undefined],
    ['sent', 'receipt', 'sent'],
    ['delivered', 'receipt', 'delivered'],
    ['read', 'receipt', 'read'],
    ['undelivered', 'receipt', 'failed'],
    ['failed', 'receipt', 'failed'],
    ['constructor', 'ignored', undefined],
  ])('with the status %s of a message of ours is %s', (MessageStatus, kind, state) => {
    const about = { MessageStatus, From: '+15005550006', To: '+4915112345678', ErrorCode: '30003' };
    const [item] = read(about, settings, `${url}?mark=m_1.0`);
    expect(item).toMatchObject({ kind, ...(state !== undefined && { state, reference: 'm_1.0', messageId: text['MessageSid'] }) });
    expect(item).toMatchObject(state === undefined ? {} : { errorCodes: state === 'failed' ? ['30003'] : [] });
  });
});

describe('an answer of Twilio', () => {
  const outcome = (code: number, status = 400, headers: Fields = {}): unknown =>
    classifyTwilioSend({ status, headers: new Headers(headers), body: { code, message: 'm', more_info: 'i', status } });

  it.each([
    [21610, 'recipient_failed'],
    [21211, 'recipient_failed'],
    [21614, 'recipient_failed'],
    [21408, 'recipient_failed'],
    [63024, 'recipient_failed'],
    [20003, 'binding_failed'],
    [21606, 'binding_failed'],
    [63007, 'binding_failed'],
    [63016, 'window_closed'],
    [21611, 'retry'],
    [63018, 'retry'],
    [21617, 'refused'],
    [21602, 'refused'],
    [99999, 'refused'],
  ])('with the code %i is %s', (code, kind) => {
    expect(outcome(code)).toMatchObject({ kind, code: String(code) });
  });

  it('without a known code goes by its status', () => {
    expect(outcome(20429, 429, { 'retry-after': '7' })).toMatchObject({ kind: 'retry', afterMs: 7000 });
    expect(outcome(99999, 429)).toMatchObject({ kind: 'retry' });
    expect(outcome(20500, 500)).toMatchObject({ kind: 'retry' });
    expect(outcome(99999, 401)).toMatchObject({ kind: 'binding_failed' });
    expect(classifyTwilioSend({ status: 201, headers: new Headers(), body: {} })).toMatchObject({ kind: 'unknown' });
  });
});

describe('sending rules of Twilio', () => {
  it('is WhatsApp for its addresses, with a window of a day, and SMS for all others, with none', () => {
    const lastInboundMs = nowMs - 25 * 3_600_000;
    const stateFor = (hint: Parameters<typeof twilio.rulesFor>[0]): string =>
      replyWindow(twilio.rulesFor(hint), { lastInboundMs, nowMs }).state;
    expect(stateFor({ to: 'whatsapp:+4915112345678' })).toBe('closed');
    expect(stateFor({ to: '+4915112345678', identifiers: { from: 'whatsapp:+15005550006' } })).toBe('none');
    expect(stateFor({ identifiers: { from: 'whatsapp:+15005550006' } })).toBe('closed');
    expect(stateFor({})).toBe('none');
  });

  it('numbers the parts of a long SMS within 1600 characters, and not those on WhatsApp', () => {
    const long = 'All work and no play. '.repeat(200);
    const parts = renderParts(long, twilio.rulesFor({ to: '+4915112345678' }));
    expect(parts.map(({ text: part }) => part.slice(0, 6))).toEqual(['(1/3) ', '(2/3) ', '(3/3) ']);
    for (const part of parts) expect(part.text.length).toBeLessThanOrEqual(1600);
    expect(renderParts('short', twilio.rulesFor({ to: '+4915112345678' }))).toEqual([{ text: 'short', plain: 'short' }]);
    const onWhatsApp = renderParts(`**b** ${long}`, twilio.rulesFor({ to: 'whatsapp:+4915112345678' }));
    expect(onWhatsApp[0]?.text).toMatch(/^\*b\* All work/u);
    for (const part of onWhatsApp) expect(part.text.length).toBeLessThanOrEqual(1600);
  });
});

describe('the settings of Twilio', () => {
  it('need a sender or a messaging service', () => {
    const { from, ...account } = settings;
    expect(parseChannelSettings('channel_e', settings)).toEqual(settings);
    expect(parseChannelSettings('channel_e', { ...account, messagingServiceSid: sid('MG', '3') })).not.toHaveProperty('from');
    expect(() => parseChannelSettings('channel_e', account)).toThrow('These are not the settings of twilio.');
    expect(() => parseChannelSettings('channel_e', { ...account, from: `sms:${String(from)}` })).toThrow(
      'These are not the settings of twilio.',
    );
    expect(channelDefinitions.channel_e.secrets).toEqual(['authToken']);
  });
});
