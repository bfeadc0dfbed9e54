import { describe, expect, it } from '@jest/globals';
import { runWebhookKills } from './webhook-kills.ts';

describe('webhooks that are brought again and again to gateways that die', () => {
  it(
    'are answered once each, and each person in order, whatever dies and whatever Redis forgets',
    async () => {
      const report = await runWebhookKills({ seed: 20_261_121, messages: 400, people: 20, kills: 12, flushes: 1 });
      expect(report.findings).toEqual([]);
      expect(report.deliveries).toBeGreaterThan(report.messages);
    },
    20 * 60_000,
  );
});
