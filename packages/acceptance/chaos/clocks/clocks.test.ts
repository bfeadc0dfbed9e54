import { describe, expect, it } from '@jest/globals';
import { canRun } from '@concierge/testing';
import { holds } from '../holds.ts';
import { runWrongClocks } from '../scenarios.ts';

const minutes = 60_000;

const withClocks = canRun(['faketime', '-f', '+1h', 'true'], 'no faketime (apt install faketime)') ? describe : describe.skip;

withClocks('clocks that disagree', () => {
  it(
    'end no turn, delay no recovery and lose no reader a word',
    async () => {
      const steps = [
        { clock: 'worker-0', offsetSeconds: 3600 },
        { clock: 'redis', offsetSeconds: -30 },
      ];
      const verdict = holds((report) => {
        expect(report.failedTurns).toEqual({});
        expect(report.recoveryMs.samples).toBeGreaterThan(0);
      });
      await runWrongClocks({ seed: 20_261_122, steps }, verdict);
    },
    35 * minutes,
  );
});
