import { useEffect, useMemo, useSyncExternalStore } from 'react';
import { z } from 'zod';
import { keep, readKept, subscribeToKept } from '../parts/browser-storage.ts';

const NAME = 'concierge.seen';
/** More conversations than staff looks at; those that were looked at longest ago go first. */
const KEPT_MAX = 500;

/** `since`: all that is older counts as seen. `until`: by conversation, the time of what was seen of it last. */
const Seen = z.object({ since: z.string(), until: z.record(z.string(), z.string()) });
type Seen = z.infer<typeof Seen>;

const readText = (): string | null => readKept('localStorage', NAME);

/** Undefined for a browser that has kept nothing, or nothing that can be read. */
function parse(text: string | null): Seen | undefined {
  try {
    return Seen.safeParse(JSON.parse(text ?? '')).data;
  } catch {
    return undefined;
  }
}

function write(seen: Seen): void {
  keep('localStorage', NAME, JSON.stringify(seen));
}

/** Remembers in this browser that a conversation was seen up to a time. */
function markSeen(id: string, at: string): void {
  const seen = parse(readText()) ?? { since: at, until: {} };
  if (Date.parse(seen.until[id] ?? seen.since) >= Date.parse(at) && id in seen.until) return;
  const entries = Object.entries({ ...seen.until, [id]: at }).toSorted(([, one], [, other]) => Date.parse(other) - Date.parse(one));
  const [oldestLeftOut] = entries.slice(KEPT_MAX);
  write({ since: oldestLeftOut?.[1] ?? seen.since, until: Object.fromEntries(entries.slice(0, KEPT_MAX)) });
}

/**
 * Whether something at this time of a conversation was not seen in this browser yet. A browser that has never shown the
 * inbox begins with everything seen.
 */
export function useUnread(): (id: string, at: string) => boolean {
  const text = useSyncExternalStore(subscribeToKept, readText);
  const seen = useMemo(() => parse(text), [text]);
  useEffect(() => {
    if (seen === undefined) write({ since: new Date().toISOString(), until: {} });
  }, [seen]);
  return (id, at) => seen !== undefined && Date.parse(at) > Date.parse(seen.until[id] ?? seen.since);
}

/** Counts a conversation as seen up to a time, while the tab is looked at. */
export function useMarkSeen(id: string, at: string | undefined): void {
  useEffect(() => {
    if (at === undefined) return undefined;
    const look = (): void => {
      if (document.visibilityState === 'visible') markSeen(id, at);
    };
    look();
    document.addEventListener('visibilitychange', look);
    return () => document.removeEventListener('visibilitychange', look);
  }, [id, at]);
}
