import { describe, expect, it } from '@jest/globals';
import type { ScheduleTiming } from '@concierge/contract';
import { assertTiming, dueTicks, jitterMs, nextRunMs, nextTicks, type TimedSchedule } from './schedule-times.ts';

const nowMs = Date.parse('2027-01-01T00:00:00Z');
const toId = (digit: string): string => `s_${digit.repeat(32)}`;
const timed = (schedule: ScheduleTiming, more: Partial<TimedSchedule> = {}): TimedSchedule => ({
  id: toId('1'),
  schedule,
  countsFrom: '2027-01-01T00:00:00.000Z',
  jitterSeconds: 0,
  ...more,
});
const iso = (ms: number | null | undefined): string | null => (ms == null ? null : new Date(ms).toISOString().slice(0, 16));

describe('the times of a schedule', () => {
  it('of an interval count from when it was made, whenever one asks', () => {
    const every = timed({ every: '45m' });
    expect(nextTicks(every, 0, 3).map(({ atMs }) => iso(atMs))).toEqual(['2027-01-01T00:45', '2027-01-01T01:30', '2027-01-01T02:15']);
    expect(iso(nextRunMs(every, nowMs + 46 * 60_000))).toBe('2027-01-01T01:30');
    expect(iso(nextRunMs(every, nowMs + 45 * 60_000))).toBe('2027-01-01T01:30');
  });

  it('of a single moment are one, and then none', () => {
    const once = timed({ at: '2027-02-01T09:00:00+01:00' });
    expect(nextTicks(once, 0, 5).map(({ atMs }) => iso(atMs))).toEqual(['2027-02-01T08:00']);
    expect(nextRunMs(once, Date.parse('2027-02-01T08:00:00Z'))).toBeNull();
  });

  it('of a cron expression do not reach back before it counts', () => {
    const daily = timed({ cron: '0 9 * * *', timezone: 'Europe/Berlin' });
    expect(iso(nextTicks(daily, 0, 1)[0]?.atMs)).toBe('2027-01-01T08:00');
  });

  it('are due when they have come, bounded in number, the oldest first', () => {
    const daily = timed({ cron: '0 9 * * *', timezone: 'UTC' });
    const query = { afterMs: nowMs, nowMs: nowMs + 3 * 86_400_000, limit: 10 };
    expect(dueTicks(daily, query).map(({ atMs }) => iso(atMs))).toEqual(['2027-01-01T09:00', '2027-01-02T09:00', '2027-01-03T09:00']);
    expect(dueTicks(daily, { ...query, limit: 2 })).toHaveLength(2);
    expect(dueTicks(daily, { ...query, nowMs: nowMs + 60_000 })).toEqual([]);
  });

  it('with jitter come later by an amount that stays, and keep their names', () => {
    const jittered = timed({ every: '1h' }, { jitterSeconds: 600 });
    const delay = jitterMs(jittered);
    expect(delay).toBeGreaterThan(0);
    expect(delay).toBeLessThan(600_000);
    expect(jitterMs(jittered)).toBe(delay);
    expect(jitterMs({ ...jittered, id: toId('2') })).not.toBe(delay);
    const hourMs = nowMs + 3_600_000;
    expect(nextRunMs(jittered, nowMs)).toBe(hourMs + delay);
    expect(nextRunMs(jittered, hourMs)).toBe(hourMs + delay);
    expect(dueTicks(jittered, { afterMs: nowMs, nowMs: hourMs + delay - 1, limit: 5 })).toEqual([]);
    expect(dueTicks(jittered, { afterMs: nowMs, nowMs: hourMs + delay, limit: 5 })).toMatchObject([{ atMs: hourMs }]);
  });
});

describe('a schedule of the standard plan', () => {
  const standard = { nowMs, plan: 'standard' } as const;

  it.each<ScheduleTiming>([
    { cron: '* * * * *', timezone: 'UTC' },
    { every: '1m' },
    { every: '90s' },
    { every: '366d' },
    { at: '2027-01-01T00:00:01Z' },
  ])('may be %j', (timing) => {
    expect(() => assertTiming(timing, standard)).not.toThrow();
  });

  it.each<[ScheduleTiming, string]>([
    [{ every: '59s' }, 'at least 1 minute apart, these are 0.98'],
    [{ every: '367d' }, 'at most 366d'],
    [{ at: '2027-01-01T00:00:00Z' }, 'in the future'],
    [{ at: '2031-01-01T00:00:00Z' }, '366 days'],
    [{ cron: '* * * * * *', timezone: 'UTC' }, '6 fields instead of five'],
  ])('is not %j', (timing, reason) => {
    expect(() => assertTiming(timing, standard)).toThrow(reason);
  });
});

describe('a schedule of the preview plan', () => {
  const preview = { nowMs, plan: 'preview' } as const;

  it('is at least a quarter of an hour apart', () => {
    expect(() => assertTiming({ cron: '*/15 * * * *', timezone: 'UTC' }, preview)).not.toThrow();
    expect(() => assertTiming({ every: '15m' }, preview)).not.toThrow();
    expect(() => assertTiming({ every: '14m' }, preview)).toThrow('at least 15 minutes apart, these are 14');
    expect(() => assertTiming({ cron: '*/10 * * * *', timezone: 'UTC' }, preview)).toThrow('at least 15 minutes apart, these are 10');
    expect(() => assertTiming({ cron: '0,50 * * * *', timezone: 'UTC' }, preview)).toThrow('these are 10');
    expect(() => assertTiming({ cron: '50 23,0 * * *', timezone: 'UTC' }, preview)).not.toThrow();
  });
});
