import { AppError } from '@concierge/contract';
import { Sealer } from '@concierge/runtime';

/**
 * Seals what a tenant entrusts to us (credentials of channels, headers of MCP servers) before it is written to a file:
 * with the tenant and the field as associated data, so that a sealed text that is copied to another tenant or another
 * field does not open.
 */
export class TenantSecrets {
  readonly #tenantId: string;
  readonly #sealer: Sealer | undefined;

  /** `secret`: SECRETS_KEY, of any length and form. Without one nothing can be sealed or opened. */
  constructor(tenantId: string, secret: string | undefined) {
    this.#tenantId = tenantId;
    this.#sealer = secret === undefined ? undefined : new Sealer(secret, 'concierge tenant secrets');
  }

  /**
   * `field` is the field's name, as in `channels/telegram.botToken`.
   * @throws AppError internal_error without SECRETS_KEY
   */
  seal(field: string, text: string): string {
    return this.#sealerOrThrow().seal(this.#associated(field), text);
  }

  /** @throws AppError internal_error when it was sealed elsewhere, with another key, or was changed */
  open(field: string, sealed: string): string {
    try {
      return this.#sealerOrThrow().open(this.#associated(field), sealed);
    } catch (error) {
      throw new AppError('internal_error', 'A stored credential cannot be read; enter it again.', { cause: error });
    }
  }

  /**
   * A token for this field that cannot be guessed and that is kept nowhere: the same at every call, another one for
   * each tenant. @throws AppError internal_error without SECRETS_KEY
   */
  deriveToken(field: string): string {
    return this.#sealerOrThrow().deriveToken(this.#associated(field));
  }

  #sealerOrThrow(): Sealer {
    if (this.#sealer === undefined) throw new AppError('internal_error', 'This service has no SECRETS_KEY: it cannot keep credentials.');
    return this.#sealer;
  }

  #associated(field: string): string {
    return JSON.stringify([this.#tenantId, field]);
  }
}
