import { z } from 'zod';

export const SECOND_MS = 1000;
export const MINUTE_MS = 60 * SECOND_MS;
export const HOUR_MS = 60 * MINUTE_MS;
/** A day of 24 hours: calendar days of a time zone may be shorter or longer. */
export const DAY_MS = 24 * HOUR_MS;

const pattern = /^([1-9][0-9]{0,4})([smhd])$/u;
const unitMs = new Map([
  ['s', SECOND_MS],
  ['m', MINUTE_MS],
  ['h', HOUR_MS],
  ['d', DAY_MS],
]);

/** As settings and schedules write it: `90s`, `15m`, `4h`, `1d`. */
export const Duration = z.string().regex(pattern, 'must be a duration such as 30m');

/** @throws RangeError for what `Duration` would have refused */
export function durationMs(duration: string): number {
  const [, count, unit = ''] = pattern.exec(duration) ?? [];
  const factor = unitMs.get(unit);
  if (factor === undefined) throw new RangeError(`${duration} is not a duration`);
  return Number(count) * factor;
}

function isTimeZone(zone: string): boolean {
  // Offsets such as +02:00 are taken by Intl, too; they know nothing of summer time.
  if (!/^[A-Za-z]/u.test(zone)) return false;
  try {
    return new Intl.DateTimeFormat('en', { timeZone: zone }).resolvedOptions().timeZone !== '';
  } catch {
    return false;
  }
}

export const TimeZone = z.string().max(64).refine(isTimeZone, 'is not an IANA time zone such as Europe/Berlin');

/** An address that a tenant names: http or https, and nothing in it that must not be shown. */
export const HttpUrl = z
  .url({ protocol: /^https?$/u })
  .max(2048)
  .refine((url) => !hasCredentials(url), 'must not hold credentials: use a header');

function hasCredentials(url: string): boolean {
  const { username, password } = URL.parse(url) ?? { username: '', password: '' };
  return username !== '' || password !== '';
}

/** A map with at most so many names. */
export function limitedRecord<Key extends z.core.$ZodRecordKey, Value extends z.core.SomeType>(
  key: Key,
  value: Value,
  maxProperties: number,
): z.ZodRecord<Key, Value> {
  return z
    .record(key, value)
    .refine((record) => Object.keys(record).length <= maxProperties, `must have at most ${String(maxProperties)} entries`)
    .meta({ maxProperties });
}

/**
 * Does a JSON value consist of more values than this, itself included? Looks at no more of them, and no nesting is too
 * deep for it.
 */
export function hasMoreValues(value: unknown, most: number): boolean {
  const waiting: unknown[] = [value];
  for (let seen = 1; waiting.length > 0; seen += 1) {
    if (seen > most || waiting.length > most) return true;
    const next = waiting.pop();
    if (typeof next !== 'object' || next === null) continue;
    const inside = Array.isArray(next) ? next : Object.values(next);
    if (seen + waiting.length + inside.length > most) return true;
    waiting.push(...inside);
  }
  return false;
}
