import type { UsageRow } from '@concierge/contract';
import type { TenantIndex } from '@concierge/tenant';

/** What the tenant has used. */
export interface UsageView {
  /** Of turns that ended today, by UTC. */
  today(): Promise<readonly UsageRow[]>;
}

export function usageView(index: Pick<TenantIndex, 'usage'>, now: () => Date = () => new Date()): UsageView {
  return {
    today: async () => {
      const day = now().toISOString().slice(0, 'YYYY-MM-DD'.length);
      return index.usage({ from: day, to: day });
    },
  };
}
