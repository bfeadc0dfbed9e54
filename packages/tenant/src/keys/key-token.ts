import { createHmac, timingSafeEqual } from 'node:crypto';
import { KeyScope, keyPrefix, TenantId } from '@concierge/contract';
import { parseJson } from '@concierge/files';
import { z } from 'zod';

const signatureBytes = 32;
const maxTokenCharacters = 1024;
/** So that a signature made for something else with the same secret is none here. */
const purpose = 'concierge api key 1\n';

export const keyIdPattern = /^k_[0-9a-f]{16}$/u;

const KeyClaims = z.strictObject({
  keyId: z.string().regex(keyIdPattern),
  accountId: TenantId,
  scopes: z.array(KeyScope).min(1),
  issuedAt: z.iso.datetime(),
});
/** What a key states about itself. It finds the key's record; the record is the authority. */
export type KeyClaims = z.infer<typeof KeyClaims>;

/**
 * `ck_live_` and then, as one base64url text without padding: the claims as JSON, followed by the 32 bytes of their
 * HMAC-SHA256. The signature has a fixed length, so nothing needs to stand between the two.
 */
export function encodeKey(claims: KeyClaims, secret: string): string {
  const payload = Buffer.from(JSON.stringify(claims));
  return keyPrefix + Buffer.concat([payload, sign(payload, secret)]).toString('base64url');
}

/**
 * undefined for anything that was not made by `encodeKey` with this secret, other spellings of the same bytes included.
 */
export function decodeKey(raw: string, secret: string): KeyClaims | undefined {
  if (!raw.startsWith(keyPrefix) || raw.length > maxTokenCharacters) return undefined;
  const text = raw.slice(keyPrefix.length);
  const bytes = Buffer.from(text, 'base64url');
  // base64 has several spellings for the same bytes and the decoder ignores what it does not know: only one is ours.
  if (bytes.length <= signatureBytes || bytes.toString('base64url') !== text) return undefined;
  const payload = bytes.subarray(0, -signatureBytes);
  if (!timingSafeEqual(bytes.subarray(-signatureBytes), sign(payload, secret))) return undefined;
  const claims = parseJson(KeyClaims, payload.toString('utf8'));
  return claims.status === 'ok' ? claims.value : undefined;
}

function sign(payload: Uint8Array, secret: string): Buffer {
  return createHmac('sha256', secret).update(purpose).update(payload).digest();
}
