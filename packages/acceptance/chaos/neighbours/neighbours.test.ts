import { describe, expect, it } from '@jest/globals';
import { holds } from '../holds.ts';
import { runFloodBeside, runHangs, runPoison } from '../scenarios.ts';

const seed = 20_261_122;
const minutes = 60_000;

describe('eight turns beside one that kills every worker that runs it', () => {
  it(
    'are all answered, and it is ended after three starts',
    async () => {
      const verdict = holds((report) => {
        expect(report.failedTurns).toEqual({ turn_crashed: 1 });
      });
      await runPoison({ seed, rounds: [{ innocents: 8 }] }, verdict);
    },
    30 * minutes,
  );
});

describe('a gateway, a worker and a cron whose event loops hang', () => {
  it(
    'end by themselves, and every turn is answered',
    async () => {
      const verdict = holds((report) => {
        expect(report.failedTurns).toEqual({});
      });
      await runHangs({ seed, rounds: 1 }, verdict);
    },
    30 * minutes,
  );
});

describe('ten quiet tenants beside a flood', () => {
  it(
    'do not wait in its queue',
    async () => {
      const verdict = holds((report) => {
        expect(report.waits?.loud.turns).toBe(300);
        expect(report.waits?.beside.turns).toBeGreaterThan(0);
      });
      await runFloodBeside({ seed, turns: 300, aloneMs: 3000 }, verdict);
    },
    30 * minutes,
  );
});
