import { DAY_MS, HOUR_MS, MINUTE_MS } from '@concierge/contract';

/** How long ago, in one short word: `now`, `5 min`, `3 h`, `2 d`, then the date. */
export function relativeTime(at: string, nowMs: number): string {
  const ageMs = nowMs - Date.parse(at);
  if (ageMs < MINUTE_MS) return 'now';
  if (ageMs < HOUR_MS) return `${String(Math.floor(ageMs / MINUTE_MS))} min`;
  if (ageMs < DAY_MS) return `${String(Math.floor(ageMs / HOUR_MS))} h`;
  if (ageMs < 7 * DAY_MS) return `${String(Math.floor(ageMs / DAY_MS))} d`;
  const sameYear = new Date(at).getFullYear() === new Date(nowMs).getFullYear();
  return new Intl.DateTimeFormat(undefined, sameYear ? { day: 'numeric', month: 'short' } : { dateStyle: 'medium' }).format(new Date(at));
}

/** When: the time of day, and the date where it is not today's. */
export function clockTime(at: string, nowMs: number): string {
  const isToday = new Date(at).toDateString() === new Date(nowMs).toDateString();
  const style = isToday ? ({ timeStyle: 'short' } as const) : ({ dateStyle: 'medium', timeStyle: 'short' } as const);
  return new Intl.DateTimeFormat(undefined, style).format(new Date(at));
}

/** The exact time, for the hover text; `locale`: the browser's own when left out. */
export function exactTime(at: string, locale?: string): string {
  return new Intl.DateTimeFormat(locale, { dateStyle: 'full', timeStyle: 'medium' }).format(new Date(at));
}

/** `840 ms`, `3.2 s`, `2 min 5 s`. */
export function duration(ms: number): string {
  if (ms < 1000) return `${String(Math.round(ms))} ms`;
  if (ms < MINUTE_MS) return `${(ms / 1000).toFixed(1)} s`;
  return `${String(Math.floor(ms / MINUTE_MS))} min ${String(Math.round((ms % MINUTE_MS) / 1000))} s`;
}
