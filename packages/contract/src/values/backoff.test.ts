import { describe, expect, it } from '@jest/globals';
import { backoffMs } from './backoff.ts';

const attempts = [1, 2, 3, 4, 5000];

describe('backoffMs', () => {
  it('doubles from the first wait up to the longest', () => {
    expect(attempts.map((attempt) => backoffMs(attempt, { firstMs: 500, maxMs: 3000 }))).toEqual([500, 1000, 2000, 3000, 3000]);
  });

  it('grows by another factor where one is given', () => {
    const plan = { firstMs: 4000, factor: 4, maxMs: 900_000 };
    expect(attempts.map((attempt) => backoffMs(attempt, plan))).toEqual([4000, 16_000, 64_000, 256_000, 900_000]);
  });

  it('waits the least share always and the share of jitter by chance', () => {
    const plan = { firstMs: 1000, maxMs: 8000, least: 0.5, jitter: 0.5 };
    expect([0, 0.5, 1].map((random) => backoffMs(2, plan, random))).toEqual([1000, 1500, 2000]);
    expect([0, 1].map((random) => backoffMs(9, { ...plan, least: 1 }, random))).toEqual([8000, 12_000]);
  });
});
