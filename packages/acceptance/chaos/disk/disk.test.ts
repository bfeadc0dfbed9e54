import { describe, expect, it } from '@jest/globals';
import { canRun } from '@concierge/testing';
import { holds } from '../holds.ts';
import { runFullDisk } from '../scenarios.ts';
import { asRoot } from './small-disk.ts';

const mayMount = [...asRoot, 'unshare', '--mount', 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt'];
const withSmallDisk = canRun(mayMount, 'no right to mount a small disk (root, or sudo without a password)') ? describe : describe.skip;

withSmallDisk('a disk without a byte left', () => {
  it(
    'puts questions off with 503, and goes on by itself when there is room again',
    async () => {
      const verdict = holds((report) => {
        expect(report.failedTurns).toEqual({});
      });
      await runFullDisk({ seed: 20_261_122 }, verdict);
    },
    30 * 60_000,
  );
});
