export { CursorPages, type Page } from './cursor.ts';
export { SqliteBackend } from './database/sqlite-backend.ts';
export type { IndexStore } from './open-index.ts';
export { toTurnView } from './lists/queries.ts';
export { foldWords, toRemovedSession } from './lists/rows.ts';
export { openIndex, storeOver } from './open-index.ts';
export { isUnspaced, readTerms, readQuestion, termFor, weighTerm, type QuestionTerm } from './passages/question.ts';
export { PassageIndex, type SourceName, type StaleSession } from './passages/passage-index.ts';
export type { FoundPassage, PassageRank } from './passages/passage-queries.ts';
export { tenantOwner, type PassageKind, type PassageScope, embeddedText, withoutSpeakers, type Passage } from './passages/passage.ts';
export type { PassageChanges } from './passages/upsert-passages.ts';
export { TenantIndex } from './tenant-index.ts';
export type {
  DriftReport,
  IndexedContact,
  IndexedSession,
  IndexedTurn,
  IndexSource,
  NamedContact,
  SessionPut,
  SessionsQuery,
  SomeIds,
  SourceSession,
  TableDrift,
  TurnsQuery,
} from './types.ts';
