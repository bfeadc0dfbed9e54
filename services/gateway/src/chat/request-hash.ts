import { hashParts } from '@concierge/runtime';

/** What a chat request asks for: two with one Idempotency-Key must agree in all of it. */
export interface AskedFor {
  readonly agent: string;
  readonly message: string;
  readonly contactId: string | null;
  readonly sender: string | null;
  readonly channel: string;
  readonly attachmentKeys: readonly string[];
}

/**
 * SHA-256 (hex) over one canonical spelling, so that neither the order of the fields nor white space nor a channel's
 * synonym matters.
 */
export function requestHash({ agent, message, contactId, sender, channel, attachmentKeys }: AskedFor): string {
  return hashParts([agent, message, contactId, sender, channel, attachmentKeys], { separator: 'json' });
}
