import { DAY_MS, HOUR_MS, MINUTE_MS } from '@concierge/contract';
import { LRUCache } from 'lru-cache';

/** No two changes of a zone's clocks are closer to each other than this, nor is a change larger. */
const stepMs = 3 * HOUR_MS;

const formats = new LRUCache<string, Intl.DateTimeFormat>({ max: 500 });

export interface WallInstant {
  readonly atMs: number;
  /** The clocks never show this time: they go forward over it, and `atMs` is the moment when they do. */
  readonly isMoved: boolean;
}

/**
 * A zone's wall clock. A wall time is written as the milliseconds since the epoch that it would be if the zone were
 * UTC, so that one can count with it.
 */
export class ZoneClock {
  readonly zone: string;
  readonly #format: Intl.DateTimeFormat;

  /** `zone`: one that `TimeZone` of the contract has passed. */
  constructor(zone: string) {
    this.zone = zone;
    this.#format = formats.get(zone) ?? newFormat(zone);
    formats.set(zone, this.#format);
  }

  wallAt(atMs: number): number {
    return atMs + this.offsetAt(atMs);
  }

  /** As ISO 8601 with the offset: `2026-11-30T09:00:00.000+01:00`. */
  write(atMs: number): string {
    const minutes = Math.round(this.offsetAt(atMs) / MINUTE_MS);
    const two = (number: number): string => String(number).padStart(2, '0');
    const offset = `${minutes < 0 ? '-' : '+'}${two(Math.floor(Math.abs(minutes) / 60))}:${two(Math.abs(minutes) % 60)}`;
    return new Date(this.wallAt(atMs)).toISOString().replace('Z', offset);
  }

  /** Milliseconds that the zone is ahead of UTC. */
  offsetAt(atMs: number): number {
    const parts = new Map(this.#format.formatToParts(atMs).map(({ type, value }) => [type, Number(value)]));
    const of = (type: Intl.DateTimeFormatPartTypes): number => parts.get(type) ?? 0;
    const wallMs = Date.UTC(of('year'), of('month') - 1, of('day'), of('hour'), of('minute'), of('second'));
    return wallMs - Math.floor(atMs / 1000) * 1000;
  }

  /** When the clocks show this: the first time, where they show it twice. */
  toInstant(wallMs: number): WallInstant {
    const offsets = [this.offsetAt(wallMs - DAY_MS), this.offsetAt(wallMs + DAY_MS)];
    const [ahead, behind] = [Math.max(...offsets), Math.min(...offsets)];
    for (const offset of [ahead, behind]) {
      if (this.offsetAt(wallMs - offset) === offset) return { atMs: wallMs - offset, isMoved: false };
    }
    const change = this.firstChange(wallMs - ahead, wallMs - behind);
    return { atMs: change ?? wallMs - behind, isMoved: true };
  }

  /**
   * The first moment after `fromMs` and up to `toMs` from which the offset is another; undefined when it stays. For
   * spans of days, not years.
   */
  firstChange(fromMs: number, toMs: number): number | undefined {
    const offset = this.offsetAt(fromMs);
    for (let startMs = fromMs; startMs < toMs; startMs += stepMs) {
      const endMs = Math.min(startMs + stepMs, toMs);
      if (this.offsetAt(endMs) !== offset) return this.#bisect(startMs, endMs, offset);
    }
    return undefined;
  }

  #bisect(fromMs: number, toMs: number, offset: number): number {
    let [before, after] = [fromMs, toMs];
    while (after - before > 1) {
      const middle = Math.floor((before + after) / 2);
      if (this.offsetAt(middle) === offset) before = middle;
      else after = middle;
    }
    return after;
  }
}

function newFormat(zone: string): Intl.DateTimeFormat {
  return new Intl.DateTimeFormat('en-US', {
    timeZone: zone,
    calendar: 'gregory',
    numberingSystem: 'latn',
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  });
}
