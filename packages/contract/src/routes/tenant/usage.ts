import { z } from 'zod';
import { UsageDay, UsageRow } from '../../turns/usage.ts';
import { defineRoute } from '../route.ts';

/** What a tenant used between two days, both included; `total` sums the rows, and its cost those with a known price. */
export const UsageReport = z
  .object({
    from: UsageDay,
    to: UsageDay,
    items: z.array(UsageRow),
    total: UsageRow.pick({ turns: true, calls: true, inputTokens: true, cachedInputTokens: true, outputTokens: true, costUsd: true }),
  })
  .meta({ id: 'UsageReport' });
export type UsageReport = z.infer<typeof UsageReport>;

export const getUsage = defineRoute({
  id: 'getUsage',
  method: 'get',
  path: '/api/usage',
  tag: 'usage',
  summary: 'Tokens, model calls and cost by day, agent, channel and model',
  auth: 'key',
  scopes: ['admin', 'read'],
  query: z.strictObject({
    from: UsageDay.optional().meta({ description: 'First day (UTC); 29 days before `to` when omitted.' }),
    to: UsageDay.optional().meta({ description: 'Last day (UTC), included; today when omitted.' }),
  }),
  answers: { 200: { description: 'The usage.', json: UsageReport } },
  errors: [],
});
