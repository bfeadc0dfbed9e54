import { describe, expect, it } from '@jest/globals';
import { holds } from '../holds.ts';
import { runCutConnections, runLostStreams } from '../scenarios.ts';
import { runCluster, runFailover } from './failover.ts';
import { streamFaults } from './lost-streams.ts';

const seed = 20_261_122;
const minutes = 60_000;
const CUTS = 25;

describe('a Redis that loses what readers wait for', () => {
  it(
    'leaves every reader with what the session file says, and a retried request with the saved answer',
    async () => {
      const rounds = streamFaults.map((fault) => ({ fault, turns: 10 }));
      const verdict = holds((report) => {
        expect(report.turns).toBe(streamFaults.length * 10);
        expect(report.resumedConnections).toBeGreaterThanOrEqual(streamFaults.length);
      });
      await runLostStreams({ seed, rounds }, verdict);
    },
    40 * minutes,
  );
});

describe('connections to Redis that are killed under requests', () => {
  it(
    'fail no request with 500, and lose and double nothing',
    async () => {
      const verdict = holds((report) => {
        expect(report.failedTurns).toEqual({});
        expect(report.faults).toBeGreaterThan(CUTS);
      });
      await runCutConnections({ seed, cuts: CUTS }, verdict);
    },
    40 * minutes,
  );
});

describe('a replica that sentinels put in the place of its master under load', () => {
  it(
    'loses, doubles and reorders nothing, and every turn is answered',
    async () => {
      const verdict = holds((report) => {
        expect(report.turns).toBe(300);
        expect(report.failedTurns).toEqual({});
      });
      await runFailover({ seed }, verdict);
    },
    40 * minutes,
  );
});

describe('masters of a cluster of which one dies and one freezes under load', () => {
  it(
    'lose, double and reorder nothing of the tenants that are spread over them, and every turn is answered',
    async () => {
      const verdict = holds((report) => {
        expect(report.turns).toBe(300);
        expect(report.failedTurns).toEqual({});
      });
      await runCluster({ seed }, verdict);
    },
    40 * minutes,
  );
});
