import { describe, expect, it } from '@jest/globals';
import { listFindings } from './audit/auditor.ts';
import { runBackupKills } from './backup-kills.ts';
import { holds } from './holds.ts';
import { runChaos, runFailPoints, runNaive, runRollingRestart } from './scenarios.ts';

const seed = 20_261_120;
const minutes = 60_000;

describe('under chaos', () => {
  it(
    'loses, doubles and reorders nothing through 20 kills, 3 freezes, a Redis that dies and one that forgets everything',
    async () => {
      const load = { turns: 500, conversations: 40, tenants: 5, overMs: 48_000, burst: 3 };
      const faults = { kills: 20, stops: 3, stopMs: 10_500, redisKills: 1, flushes: 1, overMs: 48_000 };
      const verdict = holds((report) => {
        expect(report.turns).toBe(500);
        // At this rate a turn may lose its worker three times in a row, which ends it by rule: answered, with an error.
        // Nothing else may.
        const { turn_crashed: unlucky = 0, ...failed } = report.failedTurns;
        expect(failed).toEqual({});
        expect(unlucky).toBeLessThanOrEqual(5);
        expect(report.fencedWrites).toBeGreaterThan(0);
        expect(report.resumedConnections).toBeGreaterThan(100);
        // A busy machine adds to every start of a turn what it adds to one that is taken up.
        expect(report.recoveryMs.p50).toBeLessThan(12_000 + report.startMs.p50);
        expect(report.recoveryMs.max).toBeLessThan(25_000 + report.startMs.p99);
      });
      await runChaos({ seed, load, faults, deadlineMs: 10 * minutes }, verdict);
    },
    40 * minutes,
  );

  it(
    'goes on after a kill or a freeze at every fail point',
    async () => {
      const verdict = holds((report) => {
        expect(report.fencedWrites).toBeGreaterThan(0);
      });
      await runFailPoints({ seed }, verdict);
    },
    40 * minutes,
  );

  it(
    'loses nothing and fails no turn in a rolling restart, and every process exits with 0',
    async () => {
      const verdict = holds((report) => {
        expect(report.failedTurns).toEqual({});
      });
      await runRollingRestart({ seed }, verdict);
    },
    40 * minutes,
  );
});

describe('a backup that is taken while services are killed', () => {
  it(
    'has all that was acknowledged before it began, and nothing twice, once it is restored',
    async () => {
      const load = { turns: 160, conversations: 24, tenants: 3, overMs: 16_000, burst: 3 };
      const faults = { kills: 6, stops: 0, stopMs: 0, redisKills: 0, flushes: 0, overMs: 16_000 };
      const turns: number[] = [];
      const verdict = holds((report) => {
        turns.push(report.turns);
      });
      await runBackupKills({ seed, load, faults, deadlineMs: 5 * minutes }, verdict);
      const [asked = 0, copied = 0] = turns;
      expect(asked).toBe(160);
      expect(copied).toBeGreaterThan(40);
    },
    30 * minutes,
  );
});

describe('the naive system', () => {
  it(
    'is found to lose, double and reorder turns by the same auditor',
    async () => {
      await runNaive(seed, async (report) => {
        expect(listFindings(report, 'lost').length).toBeGreaterThan(0);
        expect(listFindings(report, 'doubled').length).toBeGreaterThan(0);
        expect(listFindings(report, 'disorder').length).toBeGreaterThan(0);
      });
    },
    15 * minutes,
  );
});
