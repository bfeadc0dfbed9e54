import { describe, expect, it } from '@jest/globals';
import type { TeamHours } from '@concierge/contract';
import { countOpenMs, listOpenings } from './opening-times.ts';

const MINUTE_MS = 60_000;
const hours: readonly TeamHours[] = [
  { day: 'mon', from: '09:00', until: '12:00' },
  { day: 'mon', from: '13:00', until: '17:00' },
  { day: 'fri', from: '22:00', until: '24:00' },
  { day: 'sat', from: '00:00', until: '02:00' },
];

function list(fromText: string, toText: string, zone = 'Europe/Berlin'): string[] {
  const span = { zone, fromMs: Date.parse(fromText), toMs: Date.parse(toText) };
  return listOpenings(hours, span).map(({ fromMs, untilMs }) =>
    [fromMs, untilMs].map((atMs) => new Date(atMs).toISOString().slice(5, 16)).join(' – '),
  );
}

describe('office hours', () => {
  it('are moments by the clocks of their zone; those that touch at midnight are one', () => {
    expect(list('2027-03-01T00:00:00Z', '2027-03-08T00:00:00Z')).toEqual([
      '03-01T08:00 – 03-01T11:00',
      '03-01T12:00 – 03-01T16:00',
      '03-05T21:00 – 03-06T01:00',
    ]);
    expect(list('2027-03-01T00:00:00Z', '2027-03-02T00:00:00Z', 'America/New_York')).toEqual([
      '03-01T14:00 – 03-01T17:00',
      '03-01T18:00 – 03-01T22:00',
    ]);
  });

  it('move when the clocks do', () => {
    expect(list('2027-03-29T00:00:00Z', '2027-03-30T00:00:00Z')).toEqual(['03-29T07:00 – 03-29T10:00', '03-29T11:00 – 03-29T15:00']);
  });

  it('count from the first minute to the last, and nothing in between', () => {
    const count = (from: string, to: string, given = hours): number =>
      countOpenMs(given, { zone: 'UTC', fromMs: Date.parse(from), toMs: Date.parse(to) }) / MINUTE_MS;
    expect(count('2027-02-28T12:00:00Z', '2027-03-01T09:05:00Z')).toBe(5);
    expect(count('2027-03-01T11:50:00Z', '2027-03-01T13:10:00Z')).toBe(20);
    expect(count('2027-03-01T17:00:00Z', '2027-03-05T21:59:00Z')).toBe(0);
    expect(count('2027-03-01T17:00:00Z', '2027-03-01T18:00:00Z', [])).toBe(60);
  });
});
