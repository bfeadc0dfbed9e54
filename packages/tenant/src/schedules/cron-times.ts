import { createRequire } from 'node:module';
import { HOUR_MS, MINUTE_MS, AppError, limits } from '@concierge/contract';
import type * as CronParser from 'cron-parser';
import type { CronExpression as ParsedCron } from 'cron-parser';
import type { ZoneClock } from './zone-clock.ts';

const require = createRequire(import.meta.url);

const dayMinutes = 24 * 60;
/**
 * One entry of a list: `*`, a number or a name, a range of them, each with a step. The library takes seconds, H, L, #
 * and ? besides.
 */
const entry = /^(?:\*|(?:\d{1,2}|[A-Za-z]{3})(?:-(?:\d{1,2}|[A-Za-z]{3}))?)(?:\/\d{1,2})?$/u;

/**
 * Five fields as Vixie cron reads them: minute, hour, day of month, month, day of week; either day is enough where both
 * are given.
 */
export class CronExpression {
  readonly text: string;
  readonly #parsed: ParsedCron;
  readonly #minutes: readonly number[];
  readonly #hours: readonly number[];

  /** @throws AppError invalid_request */
  constructor(text: string) {
    this.text = text;
    const fields = text.trim().split(/\s+/u);
    if (text.length > limits.cronMaxCharacters) throw refused(`it is longer than ${String(limits.cronMaxCharacters)} characters`);
    if (fields.length !== 5)
      throw refused(
        `it has ${String(text.trim() === '' ? 0 : fields.length)} fields instead of five: minute hour day-of-month month day-of-week`,
      );
    const odd = fields.find((field) => !field.split(',').every((part) => entry.test(part)));
    if (odd !== undefined) throw refused(`${odd} is no field: there are *, numbers, names such as MON, ranges, lists and steps`);
    // On demand: it brings a whole library of dates, 20 ms of a command that reads no schedule.
    const { CronExpressionParser }: typeof CronParser = require('cron-parser');
    try {
      // Its zone is UTC: walls are counted by it, and mapped to instants by ZoneClock.
      this.#parsed = CronExpressionParser.parse(fields.join(' '), { tz: 'UTC', currentDate: new Date(0) });
      this.#parsed.next();
    } catch (error) {
      throw refused(error instanceof Error ? error.message : 'cannot be read', error);
    }
    this.#minutes = toNumbers(this.#parsed.fields.minute.values);
    this.#hours = toNumbers(this.#parsed.fields.hour.values);
  }

  /**
   * Does it run in each hour of its days? Such a schedule goes by time that has passed, the others by what the clock
   * shows.
   */
  get isEveryHour(): boolean {
    return this.#hours.length === 24;
  }

  /** The first wall time after this one. */
  nextWall(afterMs: number): number {
    this.#parsed.reset(new Date(afterMs));
    return this.#parsed.next().getTime();
  }

  /** The least time between two runs, midnight counted as if both days were among its days. */
  get minDistanceMs(): number {
    const times = this.#hours.flatMap((hour) => this.#minutes.map((minute) => hour * 60 + minute));
    const first = times[0] ?? 0;
    const gaps = [...times, first + dayMinutes].map((time, index, all) => time - (all[index - 1] ?? time - dayMinutes));
    return Math.min(...gaps) * MINUTE_MS;
  }
}

function toNumbers(values: readonly unknown[]): readonly number[] {
  return values.filter((value) => typeof value === 'number').toSorted((a, b) => a - b);
}

function refused(problem: string, cause?: unknown): AppError {
  return new AppError('invalid_request', `The cron expression cannot be used: ${problem}.`, {
    cause,
    errors: [{ path: 'schedule.cron', message: problem }],
  });
}

/** Further away than any change of clocks could make up for. */
const farMs = 30 * HOUR_MS;
const nearMs = 27 * HOUR_MS;
const stretchesMax = 16;

/** One run that a schedule asks for, named by its time. */
export interface Tick {
  readonly atMs: number;
  /**
   * The wall time that was asked for (see ZoneClock), where the clocks skip it that day and this is the moment after.
   */
  readonly movedFromWallMs: number | null;
}

/**
 * The times of a cron expression, in order, by the rules of Vixie cron. A schedule for certain hours runs once for each
 * time on the clock: a time that the clocks skip runs when they have skipped it, a time that they show twice runs the
 * first time. A schedule for every hour goes by time that has passed: it runs in both hours that look the same, and in
 * none that is not there.
 */
export function* cronTimes(cron: CronExpression, clock: ZoneClock, afterMs: number): Generator<Tick, never, undefined> {
  if (cron.isEveryHour) return yield* passingTimes(cron, clock, afterMs);
  return yield* clockTimes(cron, clock, afterMs);
}

function* clockTimes(cron: CronExpression, clock: ZoneClock, afterMs: number): Generator<Tick, never, undefined> {
  let lastMs = afterMs;
  for (let wallMs = cron.nextWall(clock.wallAt(afterMs)); ; wallMs = cron.nextWall(wallMs)) {
    const { atMs, isMoved } = clock.toInstant(wallMs);
    // Several times that are skipped fall on one moment: one run.
    if (atMs <= lastMs) continue;
    lastMs = atMs;
    yield { atMs, movedFromWallMs: isMoved ? wallMs : null };
  }
}

function* passingTimes(cron: CronExpression, clock: ZoneClock, afterMs: number): Generator<Tick, never, undefined> {
  for (let atMs = nextPassing(cron, clock, afterMs); ; atMs = nextPassing(cron, clock, atMs)) yield { atMs, movedFromWallMs: null };
}

/** From stretch to stretch of equal offset, until one has a time. */
function nextPassing(cron: CronExpression, clock: ZoneClock, afterMs: number): number {
  let fromMs = afterMs;
  let offset = clock.offsetAt(fromMs);
  let wallMs = fromMs + offset;
  for (let stretch = 0; stretch < stretchesMax; stretch += 1) {
    const candidateMs = cron.nextWall(wallMs) - offset;
    const isFar = candidateMs - fromMs > farMs;
    const changeMs = clock.firstChange(fromMs, isFar ? fromMs + nearMs : candidateMs);
    if (changeMs === undefined && !isFar) return candidateMs;
    // Where nothing changes soon, nothing is due either until shortly before the candidate, whatever the clocks do on
    // the way.
    fromMs = changeMs ?? candidateMs - nearMs;
    offset = clock.offsetAt(fromMs);
    // A time that the clocks show at the very change counts.
    wallMs = fromMs + offset - 1;
  }
  throw new Error(`no next time of ${cron.text} in ${clock.zone} was found`);
}
