import { describe, expect, it } from '@jest/globals';
import { CronExpression, cronTimes, type Tick } from './cron-times.ts';
import { ZoneClock } from './zone-clock.ts';

interface Asked {
  readonly cron: string;
  readonly zone: string;
  readonly after: string;
  readonly count: number;
}

function ticks({ cron, zone, after, count }: Asked): Tick[] {
  const found: Tick[] = [];
  for (const tick of cronTimes(new CronExpression(cron), new ZoneClock(zone), Date.parse(after))) if (found.push(tick) === count) break;
  return found;
}

/** `UTC wall`, both as HH:MM, the day of the wall before it. */
function times(asked: Asked): string[] {
  const clock = new ZoneClock(asked.zone);
  return ticks(asked).map(({ atMs }) => {
    const wall = new Date(clock.wallAt(atMs)).toISOString();
    return `${wall.slice(5, 10)} ${wall.slice(11, 16)} (${new Date(atMs).toISOString().slice(11, 16)}Z)`;
  });
}

describe('a schedule for certain hours', () => {
  it('runs right after the clocks went forward over its time, once, and reports which time was meant', () => {
    const [moved, next] = ticks({ cron: '30 2 * * *', zone: 'Europe/Berlin', after: '2027-03-27T12:00:00Z', count: 2 });
    expect(moved).toEqual({ atMs: Date.parse('2027-03-28T01:00:00Z'), movedFromWallMs: Date.parse('2027-03-28T02:30:00Z') });
    expect(next).toEqual({ atMs: Date.parse('2027-03-29T00:30:00Z'), movedFromWallMs: null });
  });

  it('makes one run of several times that are skipped, the first one after them included', () => {
    expect(times({ cron: '*/15 2,3 * * *', zone: 'Europe/Berlin', after: '2027-03-27T12:00:00Z', count: 5 })).toEqual([
      '03-28 03:00 (01:00Z)',
      '03-28 03:15 (01:15Z)',
      '03-28 03:30 (01:30Z)',
      '03-28 03:45 (01:45Z)',
      '03-29 02:00 (00:00Z)',
    ]);
  });

  it('runs the first time of two that look the same', () => {
    expect(times({ cron: '30 2 * * *', zone: 'Europe/Berlin', after: '2027-10-30T12:00:00Z', count: 2 })).toEqual([
      '10-31 02:30 (00:30Z)',
      '11-01 02:30 (01:30Z)',
    ]);
    expect(times({ cron: '30 1 * * *', zone: 'America/New_York', after: '2027-11-06T12:00:00Z', count: 2 })).toEqual([
      '11-07 01:30 (05:30Z)',
      '11-08 01:30 (06:30Z)',
    ]);
  });

  it('does not run again when asked between the two', () => {
    expect(times({ cron: '30 2 * * *', zone: 'Europe/Berlin', after: '2027-10-31T01:10:00Z', count: 1 })).toEqual(['11-01 02:30 (01:30Z)']);
  });

  it('goes forward in New York as in Berlin', () => {
    expect(times({ cron: '30 2 * * *', zone: 'America/New_York', after: '2027-03-13T12:00:00Z', count: 2 })).toEqual([
      '03-14 03:00 (07:00Z)',
      '03-15 02:30 (06:30Z)',
    ]);
  });

  it('loses no day where the clocks go by half an hour', () => {
    expect(times({ cron: '15 2 * * *', zone: 'Australia/Lord_Howe', after: '2026-10-03T00:00:00Z', count: 2 })).toEqual([
      '10-04 02:30 (15:30Z)',
      '10-05 02:15 (15:15Z)',
    ]);
    expect(times({ cron: '45 1 * * *', zone: 'Australia/Lord_Howe', after: '2027-04-03T00:00:00Z', count: 2 })).toEqual([
      '04-04 01:45 (14:45Z)',
      '04-05 01:45 (15:15Z)',
    ]);
  });

  it('runs once on each day of a year, whatever the clocks do', () => {
    for (const zone of ['Europe/Berlin', 'Australia/Lord_Howe', 'America/Santiago', 'Asia/Beirut']) {
      for (const cron of ['15 0 * * *', '45 1 * * *', '30 2 * * *']) {
        const clock = new ZoneClock(zone);
        const days = ticks({ cron, zone, after: '2026-12-31T12:00:00Z', count: 366 }).map(({ atMs, movedFromWallMs }) =>
          new Date(movedFromWallMs ?? clock.wallAt(atMs)).toISOString().slice(0, 10),
        );
        expect(new Set(days).size).toBe(366);
      }
    }
  });
});

describe('a schedule for every hour', () => {
  it.each([
    ['Europe/Berlin', '2027-03-27', '2027-10-30'],
    ['America/New_York', '2027-03-13', '2027-11-06'],
    ['Australia/Lord_Howe', '2026-10-03', '2027-04-03'],
    ['America/Santiago', '2027-04-03', '2027-09-04'],
    ['Antarctica/Troll', '2027-03-27', '2027-10-30'],
  ])('goes by time that has passed, in %s too', (zone, ...days) => {
    for (const day of days) {
      const found = ticks({ cron: '*/30 * * * *', zone, after: `${day}T00:10:00Z`, count: 120 });
      expect(new Set(found.slice(1).map(({ atMs }, index) => atMs - (found[index]?.atMs ?? 0)))).toEqual(new Set([30 * 60_000]));
      expect(new Set(found.map(({ atMs }) => new ZoneClock(zone).offsetAt(atMs))).size).toBe(2);
    }
  });

  it('runs in both hours that look the same', () => {
    expect(times({ cron: '0 * * * *', zone: 'Europe/Berlin', after: '2027-10-30T23:45:00Z', count: 3 })).toEqual([
      '10-31 02:00 (00:00Z)',
      '10-31 02:00 (01:00Z)',
      '10-31 03:00 (02:00Z)',
    ]);
  });

  it('finds the one day a year it is for', () => {
    expect(times({ cron: '0 * 1 1 *', zone: 'America/New_York', after: '2027-01-02T04:35:00Z', count: 2 })).toEqual([
      '01-01 00:00 (05:00Z)',
      '01-01 01:00 (06:00Z)',
    ]);
    expect(times({ cron: '30 * 31 10 *', zone: 'Europe/Berlin', after: '2027-10-31T00:35:00Z', count: 2 })).toEqual([
      '10-31 02:30 (01:30Z)',
      '10-31 03:30 (02:30Z)',
    ]);
  });
});

describe('a cron expression', () => {
  it.each(['0 9 * * MON-FRI', '*/15 * * * *', '0 0 29 2 *', '0 9 1,15 * *', '0 0 * * 7', '5 4 * JAN,jul sun'])('may be %s', (text) => {
    expect(new CronExpression(text).nextWall(0)).toBeGreaterThan(0);
  });

  it.each([
    '',
    '   ',
    '* * * *',
    '* * * * * *',
    '@daily',
    'H * * * *',
    '0 0 L * *',
    '0 0 ? * *',
    '0 0 * * 1#2',
    '0 0 15W * *',
    '60 * * * *',
    '0 24 * * *',
    '*/0 * * * *',
    '*-5 * * * *',
    '5-1 * * * *',
    '-1 * * * *',
    '1.5 * * * *',
    '0 0 31 2 *',
    '0 0 * * FOO',
    '1-99999999 * * * *',
    '__proto__ * * * *',
    '0 0 * * constructor',
    `${'0,'.repeat(200)}1 * * * *`,
    '０ ０ * * *',
    '0\u00000 * * * *',
  ])('is not %j', (text) => {
    expect(() => new CronExpression(text)).toThrow('The cron expression cannot be used');
  });

  it.each([
    ['* * * * *', 1],
    ['*/15 * * * *', 15],
    ['0,50 * * * *', 10],
    ['55 9 * * *', 1440],
    ['0,55 0,23 * * *', 5],
    ['0 */6 * * *', 360],
  ])('%s runs at least %i minutes apart', (text, minutes) => {
    expect(new CronExpression(text).minDistanceMs).toBe(minutes * 60_000);
  });
});
