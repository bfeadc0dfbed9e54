import { AppError, limits, type TenantSettings } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';
import type { StreamBytes } from '@concierge/turn';

/** The quota is counted by the hour: asking again sooner is of no use. */
const QUOTA_RETRY_SECONDS = 600;

/**
 * Refuses messages of a tenant whose turns fill the memory that all tenants have together, before anything is accepted.
 */
export class StreamQuota {
  readonly #streamBytes: Pick<StreamBytes, 'countBytes'>;

  constructor(streamBytes: Pick<StreamBytes, 'countBytes'>) {
    this.#streamBytes = streamBytes;
  }

  /** @throws AppError `rate_limited` */
  refuseWhenFull(scope: TenantScope, { limits: own }: TenantSettings): void {
    const most = own?.streamCharactersPerHour ?? limits.streamsMaxCharacters;
    if (this.#streamBytes.countBytes(scope.tenantId) < most) return;
    throw new AppError(
      'rate_limited',
      `The turns of this tenant have written ${String(most)} characters within the last hour, as many as it may.`,
      { retryAfterSeconds: QUOTA_RETRY_SECONDS },
    );
  }
}
