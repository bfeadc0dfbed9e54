import { MINUTE_MS, AppError, limits } from '@concierge/contract';
import { CronExpressionParser, type CronExpression as ParsedCron } from 'cron-parser';

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
    try {
      // Its zone is UTC: walls are counted by it, and mapped to instants by ZoneClock.
      this.#parsed = CronExpressionParser.parse(fields.join(' '), { tz: 'UTC', currentDate: new Date(0) });
      this.#parsed.next();
    } catch (error) {
      throw refused(error instanceof Error ? error.message : 'cannot be read', error);
    }
    this.#minutes = numbersOf(this.#parsed.fields.minute.values);
    this.#hours = numbersOf(this.#parsed.fields.hour.values);
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

function numbersOf(values: readonly unknown[]): readonly number[] {
  return values.filter((value) => typeof value === 'number').toSorted((a, b) => a - b);
}

function refused(problem: string, cause?: unknown): AppError {
  return new AppError('invalid_request', `The cron expression cannot be used: ${problem}.`, {
    cause,
    errors: [{ path: 'schedule.cron', message: problem }],
  });
}
