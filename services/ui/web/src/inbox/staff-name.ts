import { limits } from '@concierge/contract';
import { useSyncExternalStore } from 'react';
import { keep, readKept, subscribeToKept } from '../parts/browser-storage.ts';

const NAME = 'concierge.staffName';

/** What the staff member at this browser is called; empty until they have said it. Keys may be shared. */
export function useStaffName(): string {
  return useSyncExternalStore(subscribeToKept, () => readKept('localStorage', NAME) ?? '');
}

/** Nothing is kept of an empty name. */
export function keepStaffName(name: string): void {
  const text = name.trim().slice(0, limits.staffNameMaxCharacters);
  keep('localStorage', NAME, text === '' ? null : text);
}
