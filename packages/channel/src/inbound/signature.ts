import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { WebhookRequest } from '../channel-adapter.ts';

/**
 * Stands in where there is no secret, so that refusing an unknown tenant takes as long as refusing a wrong signature.
 */
const noSecret = randomBytes(32).toString('hex');

const hexDigest = /^[0-9a-f]{64}$/u;
const digestBytes = 32;

export interface SignatureClaim {
  /** undefined or empty: refused, after the same work. Anyone can sign with an empty key. */
  readonly secret: string | undefined;
  readonly prefix: 'sha256=' | 'v0=';
  /** The header, as it came. */
  readonly given: string | undefined;
  readonly signed: readonly (string | Uint8Array)[];
}

/** Whether the header is the HMAC-SHA256 of what was signed. Never throws, whatever the header is. */
export function isSigned({ secret = '', prefix, given = '', signed }: SignatureClaim): boolean {
  const hmac = createHmac('sha256', secret === '' ? noSecret : secret);
  for (const part of signed) hmac.update(part);
  const claimed = given.startsWith(prefix) ? given.slice(prefix.length) : '';
  const isWellFormed = hexDigest.test(claimed);
  const digest = isWellFormed ? Buffer.from(claimed, 'hex') : Buffer.alloc(digestBytes);
  return timingSafeEqual(hmac.digest(), digest) && isWellFormed && secret !== '';
}

/** undefined when it is not there, or there more than once. Names of headers have no case. */
export function readHeader({ headers }: Pick<WebhookRequest, 'headers'>, name: string): string | undefined {
  const found = Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1];
  return typeof found === 'string' ? found : undefined;
}
