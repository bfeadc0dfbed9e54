import type { InboundReceipt } from '@concierge/channel';
import type { AppChannel } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';

/**
 * Whoever knows what became of messages of ours. One receipt may come several times, and before the message's id is known. A delivery is not brought again
 * because one could not be noted: what is thrown is logged.
 */
export interface ReceiptNotes {
  note(scope: TenantScope, channel: AppChannel, receipt: InboundReceipt): Promise<void>;
}
