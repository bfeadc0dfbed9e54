import type { KeyRecord } from '@concierge/tenant';
import type { TurnViewer } from '@concierge/turn';

/** A key that is for cs alone sees the turns that it has started, and no others. */
export function viewerOf(key: KeyRecord): TurnViewer {
  return key.scopes.some((scope) => scope !== 'cs') ? {} : { onlyKeyId: key.id };
}
