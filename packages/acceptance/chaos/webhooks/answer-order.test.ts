import { describe, expect, it } from '@jest/globals';
import { redisFaults } from '../redis/redis-faults.ts';
import { runAnswerOrder } from './answer-order.ts';

describe('messages of one contact through two gateways, with a Redis that is gone, frozen, full or a second old in between', () => {
  it(
    'are answered in the order in which they were acknowledged',
    async () => {
      const report = await runAnswerOrder({ seed: 20_261_122, faults: redisFaults, people: 10 });
      expect(report.findings).toEqual([]);
      // Three messages of each contact, and four around a freeze.
      expect(report.pairs).toBe((redisFaults.length * 2 + 1) * 10);
    },
    24 * 60_000,
  );
});
