import { DAY_MS, AppError, type UsageReport, type UsageRow } from '@concierge/contract';
import type { Handlers } from '../http/call.ts';

const DEFAULT_DAYS = 30;

export function usageHandlers(now: () => number = Date.now): Pick<Handlers, 'getUsage'> {
  return {
    getUsage: async ({ caller, query }) => {
      const to = query.to ?? dayOf(now());
      const from = query.from ?? dayOf(Date.parse(to) - (DEFAULT_DAYS - 1) * DAY_MS);
      if (from > to) throw new AppError('invalid_request', undefined, { errors: [{ path: 'from', message: 'must not be after `to`' }] });
      const items = await caller.scope.index.usage({ from, to });
      return { kind: 'answer', status: 200, json: { from, to, items, total: sum(items) } };
    },
  };
}

function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 'YYYY-MM-DD'.length);
}

function sum(items: readonly UsageRow[]): UsageReport['total'] {
  const total = { turns: 0, calls: 0, inputTokens: 0, cachedInputTokens: 0, outputTokens: 0 };
  let costUsd: number | null = null;
  for (const item of items) {
    total.turns += item.turns;
    total.calls += item.calls;
    total.inputTokens += item.inputTokens;
    total.cachedInputTokens += item.cachedInputTokens;
    total.outputTokens += item.outputTokens;
    if (item.costUsd !== null) costUsd = (costUsd ?? 0) + item.costUsd;
  }
  return { ...total, costUsd };
}
