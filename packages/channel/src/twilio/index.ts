import type { ChannelAdapter, ChannelWebhooks, WebhookRequest } from '../channel-adapter.ts';
import { parseTwilio } from './parse.ts';
import { isSameSecret } from '@concierge/runtime';
import { mediaSources, TwilioSender } from './send.ts';
import { plainDialect, utf16Units } from '../outbound/dialect.ts';
import { DAY_WINDOW_MS, type SendingRules } from '../outbound/sending-rules.ts';
import { whatsAppDialect } from '../whatsapp/sending-rules.ts';
import { createHmac } from 'node:crypto';
import type { TwilioSettings } from '@concierge/contract';
import { readHeader } from '../inbound/signature.ts';

/** The length of one message; beyond 160 characters Twilio sends an SMS in segments, which the phone puts together. */
const BODY_MAX_UNITS = 1600;

const WHATSAPP_PREFIX = 'whatsapp:';

/** Addresses of WhatsApp begin with its name; all others are numbers of telephones. */
function isWhatsApp(address: string): boolean {
  return address.startsWith(WHATSAPP_PREFIX);
}

const smsRules: SendingRules = {
  name: 'sms',
  dialect: plainDialect({ maxLength: BODY_MAX_UNITS, count: utf16Units }),
  isNumbered: true,
  // An ordinary number sends one segment in a second; Twilio queues what is more.
  pace: () => ({ conversationIntervalMs: 1000, conversationBurst: 3, bindingPerSecond: 10 }),
  replyWindowMs: null,
};

const whatsAppRules: SendingRules = {
  name: 'twilio-whatsapp',
  dialect: whatsAppDialect(BODY_MAX_UNITS),
  pace: () => ({ conversationIntervalMs: 6000, conversationBurst: 45, bindingPerSecond: 80 }),
  replyWindowMs: DAY_WINDOW_MS,
};

/** SMS, and WhatsApp, over Twilio's Programmable Messaging. */
export const twilio: ChannelAdapter<TwilioSettings> = {
  verify: verifyTwilio,
  parse: parseTwilio,
  selfId: ({ accountSid }) => accountSid,
  openSender: (settings, options) => new TwilioSender(settings, options),
  openWebhooks: (_settings, { hasPublicUrl }) => webhooks(hasPublicUrl),
  allRules: [smsRules, whatsAppRules],
  rulesFor: ({ to, identifiers }) => (isWhatsApp(to ?? identifiers?.['from'] ?? '') ? whatsAppRules : smsRules),
  mediaSources,
};

/**
 * The address is set on Twilio's pages. All that can be found out here is whether what comes from there can be checked
 * at all.
 */
function webhooks(hasPublicUrl: boolean): ChannelWebhooks {
  const problem = {
    name: 'webhook',
    ok: false,
    message:
      'PUBLIC_URL is not set. Twilio signs the address that it calls, so without it nothing that comes can be checked, and all of it is refused.',
  } as const;
  const look = async () => Promise.resolve(hasPublicUrl ? undefined : problem);
  return { register: look, check: look, remove: async () => Promise.resolve() };
}

/** Many times what Twilio sends. The sender of a body is not known yet while its fields are sorted. */
const BODY_MAX_BYTES = 256 * 1024;

/**
 * Base64 of the HMAC-SHA1 over the address that was called and the fields of the form, sorted by name, each with its
 * value behind it.
 */
function verifyTwilio(request: WebhookRequest, settings: TwilioSettings | undefined): boolean {
  const { body, url = '' } = request;
  if (body.length > BODY_MAX_BYTES) return false;
  const given = readHeader(request, 'x-twilio-signature');
  const fields = sortedFields(body);
  const digests = spellings(url).map((address) => computeDigest(settings?.authToken ?? '-', address + fields));
  // All are compared, whichever fits: the time it takes reveals nothing.
  const isEqual = digests.map((digest) => isSameSecret(given, digest)).includes(true);
  return isEqual && url !== '' && settings !== undefined && settings.authToken !== '';
}

/** What Twilio's signature of a form would be. */
export function signTwilio({ url, body }: { readonly url: string; readonly body: Uint8Array }, authToken: string): string {
  return computeDigest(authToken, url + sortedFields(body));
}

function computeDigest(authToken: string, signed: string): string {
  return createHmac('sha1', authToken).update(signed, 'utf8').digest('base64');
}

/** A field that is there more than once counts once for each different value. */
function sortedFields(body: Uint8Array): string {
  const form = new URLSearchParams(new TextDecoder().decode(body));
  const names = [...new Set(form.keys())].toSorted(byUnits);
  return names.flatMap((name) => [...new Set(form.getAll(name))].toSorted(byUnits).map((value) => name + value)).join('');
}

function byUnits(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

const parts = /^(?<scheme>https?:\/\/)(?<host>[^/?#:]+)(?::(?<port>\d{1,5}))?(?<rest>[/?#].*|)$/u;

/** Twilio signs the address with its port or without it, whether or not it was given one. */
function spellings(address: string): readonly [string, string, string] {
  const { scheme, host, port, rest } = parts.exec(address)?.groups ?? {};
  if (scheme === undefined || host === undefined) return [address, address, address];
  const known = port ?? (scheme === 'https://' ? '443' : '80');
  return [address, `${scheme}${host}${rest ?? ''}`, `${scheme}${host}:${known}${rest ?? ''}`];
}
