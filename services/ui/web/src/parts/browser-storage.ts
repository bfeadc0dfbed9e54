type Kind = 'localStorage' | 'sessionStorage';

const listeners = new Set<() => void>();

/** Calls back after what is kept has changed, by this page or another tab of the browser: `useSyncExternalStore`. */
export function subscribeToKept(listener: () => void): () => void {
  listeners.add(listener);
  addEventListener('storage', listener);
  return () => {
    listeners.delete(listener);
    removeEventListener('storage', listener);
  };
}

/** What the browser keeps under a name; null where it keeps nothing for this page, where asking alone throws. */
export function readKept(kind: Kind, name: string): string | null {
  try {
    return globalThis[kind].getItem(name);
  } catch {
    return null;
  }
}

/** Null removes it. Where the browser keeps nothing, the page goes on without. */
export function keep(kind: Kind, name: string, text: string | null): void {
  try {
    if (text === null) globalThis[kind].removeItem(name);
    else globalThis[kind].setItem(name, text);
  } catch {
    // See above.
  }
  for (const listener of listeners) listener();
}

export function forgetAll(kind: Kind): void {
  try {
    globalThis[kind].clear();
  } catch {
    // See above.
  }
}
