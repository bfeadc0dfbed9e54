export { openIndex, type OpenIndexOptions } from './open-index.ts';
export { turnViewOf } from './queries.ts';
export { TenantIndex } from './tenant-index.ts';
export type {
  DriftReport,
  IndexableSession,
  IndexedTurn,
  IndexSource,
  IndexStore,
  Page,
  SessionPut,
  SessionsQuery,
  SourceSession,
  TableDrift,
  TurnsQuery,
  UsageQuery,
} from './types.ts';
export { removedSessionOf } from './usage.ts';
