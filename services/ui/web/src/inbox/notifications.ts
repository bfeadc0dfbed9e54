import { useEffect, useMemo, useSyncExternalStore } from 'react';
import type { WaitingList } from '../../../src/chat/gateway-client.ts';
import { navigate } from '../navigation.ts';
import { keep, readKept, subscribeToKept } from '../parts/browser-storage.ts';
import { useWords } from '../words/words.tsx';

const WANTED = 'concierge.notify';
/** Handoffs that were looked at, or told of: no tab tells of them again. */
const TOLD = 'concierge.notified';
/** Held by each tab that is looked at. */
const LOOKED_AT = 'concierge.looked-at';

type NotifyState = 'unavailable' | 'blocked' | 'off' | 'on';

/** Without a secure address the browser has neither notifications nor locks. */
function readState(): NotifyState {
  if (!isSecureContext || !('Notification' in globalThis)) return 'unavailable';
  if (Notification.permission === 'denied') return 'blocked';
  return Notification.permission === 'granted' && wantsNotifications() ? 'on' : 'off';
}

/** Whether this browser is to tell of what waits while no tab is looked at. */
export function wantsNotifications(): boolean {
  return readKept('localStorage', WANTED) === 'yes';
}

export function useNotifyState(): NotifyState {
  return useSyncExternalStore(subscribeToKept, readState);
}

/** Asks the browser's user for leave where it is needed. */
export async function switchNotifications(isOn: boolean): Promise<void> {
  if (isOn) await Notification.requestPermission();
  keep('localStorage', WANTED, isOn ? 'yes' : null);
}

/** Tells of each conversation that waits for staff, once, while no tab of this browser is looked at. */
export function useNotifications({ items }: WaitingList): void {
  const { notification } = useWords().inbox;
  const state = useNotifyState();
  useLookedAt(state !== 'unavailable');
  const waiting = useMemo(() => items.map(({ id, sessionId, title, reason }) => ({ id, sessionId, title, reason })), [items]);
  useEffect(() => {
    if (state !== 'on') return;
    void navigator.locks.request(WANTED, async () => {
      const told = readTold();
      const fresh = waiting.filter(({ id }) => !told.has(id));
      if (fresh.length === 0) return;
      keep('localStorage', TOLD, JSON.stringify(waiting.map(({ id }) => id)));
      if (await isAnyTabLookedAt()) return;
      for (const { sessionId, title, reason } of fresh) show(notification(title), { body: reason, tag: sessionId });
    });
  }, [waiting, state, notification]);
}

function show(title: string, { body, tag }: { readonly body: string; readonly tag: string }): void {
  const shown = new Notification(title, { body, tag });
  shown.addEventListener('click', () => {
    window.focus();
    navigate(`/inbox/${tag}`);
    shown.close();
  });
}

function readTold(): ReadonlySet<string> {
  try {
    const kept: unknown = JSON.parse(readKept('localStorage', TOLD) ?? '[]');
    return new Set(Array.isArray(kept) ? kept.filter((id) => typeof id === 'string') : []);
  } catch {
    return new Set();
  }
}

async function isAnyTabLookedAt(): Promise<boolean> {
  if (document.visibilityState === 'visible') return true;
  const { held = [] } = await navigator.locks.query();
  return held.some(({ name }) => name === LOOKED_AT);
}

/** Other tabs see by a lock that this one is looked at. */
function useLookedAt(hasLocks: boolean): void {
  useEffect(() => {
    if (!hasLocks) return undefined;
    let release: (() => void) | undefined;
    const look = (): void => {
      release?.();
      release = undefined;
      if (document.visibilityState !== 'visible') return;
      const hidden = new Promise<void>((resolve) => {
        release = resolve;
      });
      void navigator.locks.request(LOOKED_AT, { mode: 'shared' }, async () => hidden);
    };
    look();
    document.addEventListener('visibilitychange', look);
    return () => {
      document.removeEventListener('visibilitychange', look);
      release?.();
    };
  }, [hasLocks]);
}
