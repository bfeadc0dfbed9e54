export type { IndexStore } from './index-store.ts';
export { openIndex, type OpenIndexOptions } from './open-index.ts';
export { turnViewOf } from './queries.ts';
export { TenantIndex } from './tenant-index.ts';
export type {
  DriftReport,
  IndexableSession,
  IndexedTurn,
  IndexSource,
  Page,
  SessionPut,
  SessionsQuery,
  SourceSession,
  TableDrift,
  TurnsQuery,
  UsageQuery,
} from './types.ts';
export { removedSessionOf } from './usage.ts';
