import { DAY_MS, HOUR_MS, MINUTE_MS } from '@concierge/contract';

const SECOND_MS = 1000;
const byteUnits = ['byte', 'kilobyte', 'megabyte', 'gigabyte', 'terabyte'] as const;

/** Numbers, times and money as one language writes them. */
export class Formats {
  readonly locale: string;
  readonly #relative: Intl.RelativeTimeFormat;

  /** `locale`: a language tag such as `de-AT`. */
  constructor(locale: string) {
    this.locale = locale;
    this.#relative = new Intl.RelativeTimeFormat(locale, { numeric: 'auto', style: 'short' });
  }

  number(value: number): string {
    return new Intl.NumberFormat(this.locale, { maximumFractionDigits: 1 }).format(value);
  }

  /** `share`: from 0 to 1. */
  percent(share: number): string {
    return new Intl.NumberFormat(this.locale, { style: 'percent', maximumFractionDigits: 0 }).format(share);
  }

  /** US dollars; small amounts with more digits, so that they are not shown as nothing. */
  usd(amount: number): string {
    const digits = amount !== 0 && Math.abs(amount) < 1 ? 4 : 2;
    return new Intl.NumberFormat(this.locale, { style: 'currency', currency: 'USD', maximumFractionDigits: digits }).format(amount);
  }

  /** Multiples of 1000, as disks are sold. */
  bytes(count: number): string {
    const power = Math.max(0, Math.min(byteUnits.length - 1, Math.floor(Math.log10(Math.max(1, count)) / 3)));
    const unit = byteUnits[power] ?? 'byte';
    // The short form of single bytes knows no plural: 107 byte.
    const unitDisplay = unit === 'byte' ? 'long' : 'short';
    const style = { style: 'unit', unit, unitDisplay, maximumFractionDigits: 1 } as const;
    return new Intl.NumberFormat(this.locale, style).format(count / 1000 ** power);
  }

  /** How long ago, or in how long, in the largest unit that says it: `5 min. ago`. */
  relative(at: string, nowMs: number): string {
    const differenceMs = Date.parse(at) - nowMs;
    const [unit, unitMs] = chooseUnit(Math.abs(differenceMs));
    return this.#relative.format(Math.trunc(differenceMs / unitMs), unit);
  }

  /** A length of time in its largest unit: `42 sec`, `5 min`. */
  duration(ms: number): string {
    if (ms < SECOND_MS) return this.#unit(Math.round(ms), 'millisecond');
    const [unit, unitMs] = chooseUnit(ms);
    // Below ten, a part tells something: 1.5 s is not 1 s.
    const value = ms / unitMs;
    return this.#unit(value < 10 ? Math.round(value * 10) / 10 : Math.round(value), unit);
  }

  /** The day and the second. */
  exactTime(at: string): string {
    return new Intl.DateTimeFormat(this.locale, { dateStyle: 'full', timeStyle: 'medium' }).format(new Date(at));
  }

  /** The time of day, and the date where it is not today's. */
  clockTime(at: string, nowMs: number): string {
    const isToday = new Date(at).toDateString() === new Date(nowMs).toDateString();
    const style = isToday ? ({ timeStyle: 'short' } as const) : ({ dateStyle: 'medium', timeStyle: 'short' } as const);
    return new Intl.DateTimeFormat(this.locale, style).format(new Date(at));
  }

  /** A day of a calendar, such as `2026-11-20`, whatever the zone. */
  day(date: string): string {
    return new Intl.DateTimeFormat(this.locale, { dateStyle: 'medium', timeZone: 'UTC' }).format(new Date(`${date}T00:00:00Z`));
  }

  /** A place on an axis of time, so exactly that its neighbours have other words: `stepMs` is how far they are. */
  tick(atMs: number, stepMs: number): string {
    return new Intl.DateTimeFormat(this.locale, chooseTickStyle(stepMs)).format(atMs);
  }

  /** Date and minute, for tables. */
  time(at: string): string {
    return new Intl.DateTimeFormat(this.locale, { dateStyle: 'medium', timeStyle: 'short' }).format(new Date(at));
  }

  #unit(value: number, unit: string): string {
    return new Intl.NumberFormat(this.locale, { style: 'unit', unit, unitDisplay: 'short', maximumFractionDigits: 1 }).format(value);
  }
}

function chooseTickStyle(stepMs: number): Intl.DateTimeFormatOptions {
  if (stepMs < MINUTE_MS) return { timeStyle: 'medium' };
  return stepMs < DAY_MS ? { timeStyle: 'short' } : { day: 'numeric', month: 'short' };
}

function chooseUnit(ms: number): ['second' | 'minute' | 'hour' | 'day', number] {
  if (ms < MINUTE_MS) return ['second', SECOND_MS];
  if (ms < HOUR_MS) return ['minute', MINUTE_MS];
  if (ms < DAY_MS) return ['hour', HOUR_MS];
  return ['day', DAY_MS];
}
