import { DAY_MS, MINUTE_MS, weekdays, type TeamHours } from '@concierge/contract';
import { ZoneClock } from '../schedules/zone-clock.ts';

/** A time in which staff answers. */
export interface Opening {
  readonly fromMs: number;
  readonly untilMs: number;
}

interface Span {
  readonly zone: string;
  readonly fromMs: number;
  readonly toMs: number;
}

/** 1 January 1970 was a Thursday. */
const FIRST_WEEKDAY = 3;

/** The times of a span in which staff answers, in order; those that touch each other are one. */
export function listOpenings(hours: readonly TeamHours[], { zone, fromMs, toMs }: Span): Opening[] {
  const clock = new ZoneClock(zone);
  const found: Opening[] = [];
  const lastDay = Math.floor(clock.wallAt(toMs) / DAY_MS);
  for (let day = Math.floor(clock.wallAt(fromMs) / DAY_MS); day <= lastDay; day += 1) {
    const name = weekdays[(day + FIRST_WEEKDAY) % weekdays.length];
    const toMoment = (time: string): number => clock.toInstant(day * DAY_MS + readMinutes(time) * MINUTE_MS).atMs;
    for (const { from, until } of hours.filter((one) => one.day === name)) found.push({ fromMs: toMoment(from), untilMs: toMoment(until) });
  }
  return join(found.filter((one) => one.untilMs > fromMs && one.fromMs < toMs && one.fromMs < one.untilMs));
}

/** Milliseconds of a span in which staff answers; without any hours it is there at all times. */
export function countOpenMs(hours: readonly TeamHours[], span: Span): number {
  if (hours.length === 0) return Math.max(0, span.toMs - span.fromMs);
  return listOpenings(hours, span).reduce(
    (sum, { fromMs, untilMs }) => sum + Math.min(untilMs, span.toMs) - Math.max(fromMs, span.fromMs),
    0,
  );
}

function join(openings: readonly Opening[]): Opening[] {
  const joined: Opening[] = [];
  for (const next of openings.toSorted((a, b) => a.fromMs - b.fromMs)) {
    const last = joined.at(-1);
    if (last === undefined || next.fromMs > last.untilMs) joined.push(next);
    else joined[joined.length - 1] = { fromMs: last.fromMs, untilMs: Math.max(last.untilMs, next.untilMs) };
  }
  return joined;
}

function readMinutes(time: string): number {
  const [hours = 0, minutes = 0] = time.split(':').map(Number);
  return hours * 60 + minutes;
}
