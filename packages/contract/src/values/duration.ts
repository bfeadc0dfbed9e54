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
