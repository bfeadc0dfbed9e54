export type { IndexStore } from './index-store.ts';
export { openIndex, type OpenIndexOptions } from './open-index.ts';
export { TenantIndex } from './tenant-index.ts';
export type {
  DriftReport,
  IndexedTurn,
  IndexSource,
  Page,
  SessionPut,
  SessionsQuery,
  TableDrift,
  TurnsQuery,
  UsageQuery,
} from './types.ts';
export { removedSessionOf } from './usage.ts';
