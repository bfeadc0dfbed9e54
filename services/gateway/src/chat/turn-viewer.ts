import type { KeyRecord } from '@concierge/tenant';
import type { TurnViewer } from '@concierge/turn';

/** A key for cs alone sees only the turns that it has started. */
export function viewerOf(key: KeyRecord): TurnViewer {
  return key.scopes.some((scope) => scope !== 'cs') ? {} : { onlyKeyId: key.id };
}
