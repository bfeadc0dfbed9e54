import { createHmac } from 'node:crypto';
import type { ChannelSettings } from '@concierge/contract';
import { isSameSecret } from '@concierge/runtime';
import type { WebhookRequest } from '../channel-adapter.ts';
import { headerOf } from '../inbound/signature.ts';

/** Many times what Twilio sends. The sender of a body is not known yet while its fields are sorted. */
const BODY_MAX_BYTES = 256 * 1024;

/**
 * Base64 of the HMAC-SHA1 over the address that was called and the fields of the form, sorted by name, each with its
 * value behind it.
 */
export function verifyTwilio(request: WebhookRequest, settings: ChannelSettings['channel_e'] | undefined): boolean {
  const { body, url = '' } = request;
  if (body.length > BODY_MAX_BYTES) return false;
  const given = headerOf(request, 'x-twilio-signature');
  const fields = sortedFields(body);
  const digests = spellings(url).map((address) => digestOf(settings?.authToken ?? '-', address + fields));
  // All are compared, whichever fits: the time it takes reveals nothing.
  const isEqual = digests.map((digest) => isSameSecret(given, digest)).includes(true);
  return isEqual && url !== '' && settings !== undefined && settings.authToken !== '';
}

function digestOf(authToken: string, signed: string): string {
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
