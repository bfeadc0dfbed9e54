import { beforeEach, describe, expect, it } from '@jest/globals';
import { QueryRecovery } from './query-recovery.ts';

let hasFailed: boolean;
let waits: number[];
let asked: number;
/** After how many waits. */
let askedAfter: number[];

beforeEach(() => {
  hasFailed = true;
  waits = [];
  asked = 0;
  askedAfter = [];
});

interface Service {
  /** What it says, one after another, when it is asked whether it is ready. */
  readonly ready: boolean[];
  /** How often it is asked for what has failed before it answers. */
  readonly succeedsAt?: number;
  readonly onWait?: () => void;
}

function recover({ ready, succeedsAt = 1, onWait }: Service): QueryRecovery {
  return new QueryRecovery({
    hasFailed: () => hasFailed,
    isReady: async () => Promise.resolve(ready.shift() ?? false),
    askAgain: async () => {
      asked += 1;
      askedAfter.push(waits.length);
      hasFailed = asked < succeedsAt;
      return Promise.resolve();
    },
    wait: async (ms) => {
      waits.push(ms);
      onWait?.();
      return Promise.resolve();
    },
  });
}

describe('a recovery', () => {
  it('asks for what has failed once the service is ready, and not before', async () => {
    await recover({ ready: [false, false, true] }).begin();
    expect([asked, waits.length]).toEqual([1, 3]);
  });

  it('looks for the service in half a minute at most', async () => {
    await recover({ ready: [false, false, false, false, true] }).begin();
    const least = [5000, 10_000, 20_000, 30_000, 30_000];
    expect(waits.length).toBe(least.length);
    for (const [index, ms] of least.entries()) {
      expect(waits[index]).toBeGreaterThanOrEqual(ms);
      expect(waits[index]).toBeLessThanOrEqual(ms * 1.2);
    }
  });

  it('asks ever more seldom for what fails although the service is ready', async () => {
    await recover({ ready: Array.from({ length: 7 }, () => true), succeedsAt: 7 }).begin();
    expect(askedAfter).toEqual([1, 2, 3, 4, 6, 10, 18]);
  });

  it('asks soon for what fails later, whatever fails for long', async () => {
    const recovery = recover({
      ready: Array.from({ length: 7 }, () => true),
      succeedsAt: 7,
      onWait: () => {
        if (waits.length === 8) void recovery.begin();
      },
    });
    await recovery.begin();
    expect(askedAfter).toEqual([1, 2, 3, 4, 6, 8, 9]);
  });

  it('leaves what was asked for meanwhile alone, and begins anew with the next failure', async () => {
    const recovery = recover({
      ready: [true],
      onWait: () => {
        hasFailed = waits.length > 1;
      },
    });
    await recovery.begin();
    expect(asked).toBe(0);
    hasFailed = true;
    await recovery.begin();
    expect([asked, waits.length]).toEqual([1, 2]);
    expect(waits[1]).toBeLessThanOrEqual(6000);
  });

  it('is one, however many have failed', async () => {
    const recovery = recover({ ready: [true] });
    await Promise.all([recovery.begin(), recovery.begin(), recovery.begin()]);
    expect([asked, waits.length]).toEqual([1, 1]);
  });
});
