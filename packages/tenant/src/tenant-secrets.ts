import { createCipheriv, createHmac, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { AppError } from '@concierge/contract';

const algorithm = 'aes-256-gcm';
const version = 'v1';
const keyBytes = 32;
/** NIST SP 800-38D, 8.2: 96 bits, random for each seal. */
const ivBytes = 12;

/**
 * Seals what a tenant entrusts to us (credentials of channels, headers of MCP servers) before it is written to a file:
 * AES-256-GCM with the tenant and the field as associated data, so that a sealed text that is copied to another tenant
 * or another field does not open.
 */
export class TenantSecrets {
  readonly #tenantId: string;
  readonly #key: Buffer | undefined;

  /** `secret`: SECRETS_KEY, of any length and form. Without one nothing can be sealed or opened. */
  constructor(tenantId: string, secret: string | undefined) {
    this.#tenantId = tenantId;
    this.#key = secret === undefined ? undefined : Buffer.from(hkdfSync('sha256', secret, '', 'concierge tenant secrets', keyBytes));
  }

  /**
   * `field` is the field's name, as in `channels/telegram.botToken`.
   * @throws AppError internal_error without SECRETS_KEY
   */
  seal(field: string, text: string): string {
    const iv = randomBytes(ivBytes);
    const cipher = createCipheriv(algorithm, this.#keyOrThrow(), iv).setAAD(this.#associated(field));
    const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
    return [version, ...[iv, cipher.getAuthTag(), sealed].map((part) => part.toString('base64url'))].join('.');
  }

  /** @throws AppError internal_error when it was sealed elsewhere, with another key, or was changed */
  open(field: string, sealed: string): string {
    const [foundVersion, iv = '', tag = '', text = ''] = sealed.split('.');
    try {
      if (foundVersion !== version) throw new TypeError(`sealed with ${String(foundVersion)}`);
      const decipher = createDecipheriv(algorithm, this.#keyOrThrow(), Buffer.from(iv, 'base64url'))
        .setAAD(this.#associated(field))
        .setAuthTag(Buffer.from(tag, 'base64url'));
      return Buffer.concat([decipher.update(Buffer.from(text, 'base64url')), decipher.final()]).toString('utf8');
    } catch (error) {
      throw new AppError('internal_error', 'A stored credential cannot be read; enter it again.', { cause: error });
    }
  }

  /**
   * A token for this field that cannot be guessed and that is kept nowhere: the same at every call, another one for
   * each tenant. @throws AppError internal_error without SECRETS_KEY
   */
  deriveToken(field: string): string {
    return createHmac('sha256', this.#keyOrThrow())
      .update(this.#associated(`token ${field}`))
      .digest('base64url');
  }

  #keyOrThrow(): Buffer {
    if (this.#key === undefined) throw new AppError('internal_error', 'This service has no SECRETS_KEY: it cannot keep credentials.');
    return this.#key;
  }

  #associated(field: string): Buffer {
    return Buffer.from(JSON.stringify([this.#tenantId, field]));
  }
}
