import { describe, expect, it } from '@jest/globals';
import { MINUTE_MS, limits, type Schedule, type ScheduleTiming } from '@concierge/contract';
import { decideDue, type RunsSituation } from './due-runs.ts';

const at = (text: string): number => Date.parse(text);
const hourly: ScheduleTiming = { every: '1h' };

function buildSchedule(more: Partial<Schedule>): Schedule {
  return {
    version: 1,
    id: `s_${'1'.repeat(32)}`,
    name: 'Report',
    agent: 'admin',
    message: 'Go.',
    schedule: hourly,
    deliver: null,
    missed: 'run_once',
    overlap: 'skip',
    jitterSeconds: 0,
    alert: null,
    enabled: true,
    authority: 'admin',
    tools: null,
    createdBy: { kind: 'operator' },
    createdAt: '2027-01-01T00:00:00.000Z',
    updatedAt: '2027-01-01T00:00:00.000Z',
    countsFrom: '2027-01-01T00:00:00.000Z',
    ...more,
  };
}

/** Times and their outcomes, as `05:00 waiting`. */
function decided(schedule: Partial<Schedule>, nowText: string, situation: Partial<RunsSituation> = {}): string[] {
  const whole = buildSchedule(schedule);
  const idle = { afterMs: at(whole.countsFrom), nowMs: at(nowText), isRunning: false, isWaiting: false, blockedReason: null };
  return decideDue(whole, { ...idle, ...situation }).map(({ scheduledAt, outcome }) => `${scheduledAt.slice(11, 16)} ${outcome}`);
}

describe('after a stop of five hours', () => {
  it.each([
    ['run_once', ['01:00 missed', '02:00 missed', '03:00 missed', '04:00 missed', '05:00 waiting']],
    ['skip', ['01:00 missed', '02:00 missed', '03:00 missed', '04:00 missed', '05:00 missed']],
    ['run_all', ['01:00 waiting', '02:00 waiting', '03:00 waiting', '04:00 waiting', '05:00 waiting']],
  ] as const)('a schedule with the policy %s handles each time accordingly', (missed, expected) => {
    expect(decided({ missed }, '2027-01-01T05:30:00Z')).toEqual(expected);
  });

  it('the run that is due right then is the one that makes up for the others', () => {
    expect(decided({ missed: 'run_once' }, '2027-01-01T03:00:10Z')).toEqual(['01:00 missed', '02:00 missed', '03:00 waiting']);
    expect(decided({ missed: 'skip' }, '2027-01-01T03:00:10Z')).toEqual(['01:00 missed', '02:00 missed', '03:00 waiting']);
  });

  it('what was decided before the stop is not decided again', () => {
    expect(decided({ missed: 'run_all' }, '2027-01-01T05:30:00Z', { afterMs: at('2027-01-01T03:00:00Z') })).toEqual([
      '04:00 waiting',
      '05:00 waiting',
    ]);
  });

  it('a single moment that has passed meets the policy, too', () => {
    const schedule: ScheduleTiming = { at: '2027-01-01T02:00:00Z' };
    expect(decided({ schedule }, '2027-01-01T05:00:00Z')).toEqual(['02:00 waiting']);
    expect(decided({ schedule, missed: 'skip' }, '2027-01-01T05:00:00Z')).toEqual(['02:00 missed']);
  });
});

describe('after a stop of months', () => {
  it('the newest are listed singly, with the time since when there were others', () => {
    const found = decideDue(buildSchedule({ schedule: { every: '1m' }, missed: 'run_all' }), {
      afterMs: at('2027-01-01T00:00:00Z'),
      nowMs: at('2027-04-01T00:00:30Z'),
      isRunning: false,
      isWaiting: false,
      blockedReason: null,
    });
    expect(found).toHaveLength(limits.scheduleMissedMax);
    expect(found.at(-1)?.scheduledAt).toBe('2027-04-01T00:00:00.000Z');
    expect(found[0]).toMatchObject({ scheduledAt: '2027-03-31T22:21:00.000Z', missedSince: '2027-01-01T00:01:00.000Z' });
  });

  it('a rare schedule still has its last time', () => {
    expect(decided({ schedule: { every: '30d' } }, '2027-04-10T00:00:00Z')).toEqual(['00:00 missed', '00:00 missed', '00:00 waiting']);
  });
});

describe('a run that is due while the one before it is under way', () => {
  const nowText = '2027-01-01T01:00:05Z';
  it('is skipped, or waits when nothing waits yet', () => {
    expect(decided({}, nowText, { isRunning: true })).toEqual(['01:00 skipped']);
    expect(decided({ overlap: 'queue' }, nowText, { isRunning: true })).toEqual(['01:00 waiting']);
    expect(decided({ overlap: 'queue' }, nowText, { isRunning: true, isWaiting: true })).toEqual(['01:00 skipped']);
    expect(decided({}, nowText)).toEqual(['01:00 waiting']);
  });

  it('counts those that are due at the same moment, too', () => {
    const frequent = { schedule: { every: '20s' } } as const;
    expect(decided(frequent, '2027-01-01T00:01:00Z')).toEqual(['00:00 waiting', '00:00 skipped', '00:01 skipped']);
    expect(decided({ ...frequent, overlap: 'queue' }, '2027-01-01T00:01:00Z')).toEqual(['00:00 waiting', '00:00 waiting', '00:01 skipped']);
  });
});

describe('the clock', () => {
  const berlin = (cron: string): Partial<Schedule> => ({
    schedule: { cron, timezone: 'Europe/Berlin' },
    countsFrom: '2027-03-27T12:00:00.000Z',
  });

  it('that goes forward over a time has it run once, right after', () => {
    expect(decided(berlin('30 2 * * *'), '2027-03-28T01:00:10Z')).toEqual(['01:00 waiting']);
    expect(decided(berlin('30 2 * * *'), '2027-03-28T12:00:00Z', { afterMs: at('2027-03-28T01:00:00Z') })).toEqual([]);
  });

  it('that shows a time twice has it run the first time only', () => {
    const autumn = { ...berlin('30 2 * * *'), countsFrom: '2027-10-30T12:00:00.000Z' };
    expect(decided(autumn, '2027-10-31T00:30:10Z')).toEqual(['00:30 waiting']);
    expect(decided(autumn, '2027-10-31T12:00:00Z', { afterMs: at('2027-10-31T00:30:00Z') })).toEqual([]);
  });

  it('that is set forward makes what it skips missed, and set back brings nothing again', () => {
    expect(decided({}, '2027-01-01T03:10:00Z', { afterMs: at('2027-01-01T01:00:00Z') })).toEqual(['02:00 missed', '03:00 waiting']);
    expect(decided({}, '2027-01-01T02:10:00Z', { afterMs: at('2027-01-01T03:00:00Z') })).toEqual([]);
  });

  it('is waited for as long as the jitter, and no run is late because of it', () => {
    const jittered = buildSchedule({ jitterSeconds: 3600, missed: 'skip' });
    const decideAt = (nowMs: number): string[] => decided(jittered, new Date(nowMs).toISOString());
    const first = Array.from({ length: 120 }, (_, minute) => at('2027-01-01T01:00:00Z') + minute * MINUTE_MS).find(
      (nowMs) => decideAt(nowMs).length > 0,
    );
    expect(first).toBeGreaterThan(at('2027-01-01T01:00:00Z'));
    expect(decideAt(first ?? 0)).toEqual(['01:00 waiting']);
  });
});

it('nothing runs for a suspended tenant, and nothing is made up for later', () => {
  expect(decided({ missed: 'run_all' }, '2027-01-01T02:30:00Z', { blockedReason: 'the tenant is suspended' })).toEqual([
    '01:00 skipped',
    '02:00 skipped',
  ]);
});
