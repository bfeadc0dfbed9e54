import { z } from 'zod';

const pattern = /^([1-9][0-9]{0,4})([smhd])$/u;
const unitMs = new Map([
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
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
