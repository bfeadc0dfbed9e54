import { createCipheriv, createHmac, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';

const algorithm = 'aes-256-gcm';
const version = 'v1';
const keyBytes = 32;
/** NIST SP 800-38D, 8.2: 96 bits, random for each seal. */
const ivBytes = 12;

/**
 * Seals texts with AES-256-GCM and a key derived from a secret. `associated` is what a text belongs to: a sealed text
 * that is copied to another place does not open there.
 */
export class Sealer {
  readonly #key: Buffer;

  /** `secret`: of any length and form. `purpose`: another one gives another key. */
  constructor(secret: string, purpose: string) {
    this.#key = Buffer.from(hkdfSync('sha256', secret, '', purpose, keyBytes));
  }

  /** A token that cannot be guessed without the secret: the same for the same text. */
  deriveToken(associated: string): string {
    return createHmac('sha256', this.#key).update(`token ${associated}`).digest('base64url');
  }

  seal(associated: string, text: string): string {
    const iv = randomBytes(ivBytes);
    const cipher = createCipheriv(algorithm, this.#key, iv).setAAD(Buffer.from(associated));
    const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
    return [version, ...[iv, cipher.getAuthTag(), sealed].map((part) => part.toString('base64url'))].join('.');
  }

  /** @throws Error when it was sealed elsewhere, with another secret, or was changed */
  open(associated: string, sealed: string): string {
    const [foundVersion, iv = '', tag = '', text = ''] = sealed.split('.');
    if (foundVersion !== version) throw new TypeError(`sealed with ${String(foundVersion)}`);
    const decipher = createDecipheriv(algorithm, this.#key, Buffer.from(iv, 'base64url'), { authTagLength: 16 })
      .setAAD(Buffer.from(associated))
      .setAuthTag(Buffer.from(tag, 'base64url'));
    return Buffer.concat([decipher.update(Buffer.from(text, 'base64url')), decipher.final()]).toString('utf8');
  }
}
