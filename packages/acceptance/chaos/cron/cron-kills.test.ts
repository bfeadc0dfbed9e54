import { describe, expect, it } from '@jest/globals';
import { runCronKillAt, runCronKills } from './cron-kills.ts';

describe('three replicas of cron that are killed again and again', () => {
  it(
    'decide about every time once and run each that they decide to run as one turn, also when Redis is emptied',
    async () => {
      const report = await runCronKills({ seed: 20_261_121, schedules: 12, overMs: 30_000, flushes: 2 });
      expect(report.findings).toEqual([]);
      expect(report.ticks).toBeGreaterThan(20);
      expect(report.turns).toBeGreaterThanOrEqual(report.ticks / 2);
      expect(report.kills).toBeGreaterThan(15);
    },
    20 * 60_000,
  );
});

describe('a replica of cron that is killed in the middle of a run', () => {
  it.each([
    // The first look, when it is found, decides nothing.
    'schedule.after-decision:kill:2',
    'schedule.after-start:kill',
    'accept.after-inbox:kill',
    'schedule.after-accept:kill',
    'schedule.before-end:kill',
  ])(
    'at %s leaves something that the next one finishes, and the run is one turn',
    async (point) => {
      expect(await runCronKillAt(point)).toEqual({ runs: [{ outcome: 'ran', status: 'done' }], turns: 1 });
    },
    12 * 60_000,
  );
});
