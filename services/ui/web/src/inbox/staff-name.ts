import { limits } from '@concierge/contract';
import { useSyncExternalStore } from 'react';
import { keep, readKept } from '../parts/browser-storage.ts';

const NAME = 'concierge.staffName';
const listeners = new Set<() => void>();

const subscribe = (listener: () => void): (() => void) => {
  listeners.add(listener);
  // Another tab of this browser has said it.
  addEventListener('storage', listener);
  return () => {
    listeners.delete(listener);
    removeEventListener('storage', listener);
  };
};

/** What the staff member at this browser is called; empty until they have said it. Keys may be shared. */
export function useStaffName(): string {
  return useSyncExternalStore(subscribe, () => readKept('localStorage', NAME) ?? '');
}

/** Nothing is kept of an empty name. */
export function keepStaffName(name: string): void {
  const text = name.trim().slice(0, limits.staffNameMaxCharacters);
  keep('localStorage', NAME, text === '' ? null : text);
  for (const listener of listeners) listener();
}
