import { createHmac, timingSafeEqual } from 'node:crypto';
import { limits, SenderClaims } from '@concierge/contract';
import { parseJson } from '@concierge/files';

const maxTokenCharacters = 2048;
const form = /^(?<payload>[A-Za-z0-9_-]+)\.(?<signature>[A-Za-z0-9_-]{43})$/u;

export type ReadToken =
  | { readonly status: 'ok'; readonly claims: SenderClaims }
  /** In words for the signer; nothing of it is shown before the signature is verified. */
  | { readonly status: 'refused'; readonly reason: string };

const notOurs: ReadToken = { status: 'refused', reason: 'The sender token was not signed with the secret of this widget.' };

/**
 * `base64url(claims as JSON).base64url(HMAC-SHA256 of the first part)`, without padding. One algorithm, which the token
 * cannot choose; one spelling of the same bytes; nothing beside the known claims.
 */
export function readSenderToken(token: string, secret: string, nowMs: number): ReadToken {
  const { payload, signature } = (token.length <= maxTokenCharacters ? form.exec(token)?.groups : undefined) ?? {};
  if (payload === undefined || signature === undefined) return notOurs;
  const given = Buffer.from(signature, 'base64url');
  // base64 has several spellings for the same bytes: only one is a signer's.
  if (given.toString('base64url') !== signature || !timingSafeEqual(given, sign(payload, secret))) return notOurs;
  const bytes = Buffer.from(payload, 'base64url');
  if (bytes.toString('base64url') !== payload) return refused('is not base64url without padding');
  const claims = parseJson(SenderClaims, bytes.toString('utf8'));
  if (claims.status === 'broken') return refused(`does not hold what it must: ${claims.reason}`);
  return inTime(claims.value, nowMs / 1000);
}

/** For tests and for servers of tenants that run on Node: what the documentation shows in a few lines. */
export function signSenderToken(claims: SenderClaims, secret: string): string {
  const payload = Buffer.from(JSON.stringify(claims)).toString('base64url');
  return `${payload}.${sign(payload, secret).toString('base64url')}`;
}

function inTime(claims: SenderClaims, now: number): ReadToken {
  const { iat, exp } = claims;
  const skew = limits.widgetClockSkewSeconds;
  if (exp <= iat || exp - iat > limits.widgetTokenMaxSeconds)
    return refused(`must end after it was made, at most ${String(limits.widgetTokenMaxSeconds / 3600)} hours`);
  if (iat > now + skew) return refused('was made in the future');
  if (exp <= now - skew) return refused('has expired');
  return { status: 'ok', claims };
}

function sign(payload: string, secret: string): Buffer {
  return createHmac('sha256', secret).update(payload).digest();
}

function refused(problem: string): ReadToken {
  return { status: 'refused', reason: `The sender token ${problem}.` };
}
