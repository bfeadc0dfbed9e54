import type { ChannelName, LastMessage, SessionOrigin } from '@concierge/contract';
import type { Generated } from 'kysely';

/** The databases there are. */
export type IndexDialect = 'sqlite' | 'postgres';

/**
 * The index's tables, the same in both databases. Every row carries its tenant; in SQLite that is one value per file,
 * in PostgreSQL the row-level policy's. Times are milliseconds since the epoch. `generation` is the rebuild during or
 * after which a row was written: it shows the rows that a running rebuild must not touch.
 */
export interface IndexTables {
  sessions: SessionsTable;
  turns: TurnsTable;
  usage: UsageTable;
  removals: RemovalsTable;
  removed_usage: RemovedUsageTable;
  skills: SkillsTable;
  meta: MetaTable;
  passage_sources: PassageSourcesTable;
  passages: PassagesTable;
  passage_vectors: PassageVectorsTable;
  pending: PendingTable;
  contacts: ContactsTable;
}

interface TenantRow {
  account_id: string;
  generation: number;
}

export interface SessionsTable extends TenantRow {
  id: string;
  agent: string;
  channel: ChannelName;
  title: string;
  message_count: number;
  revision: number;
  created_at: number;
  updated_at: number;
  origin: SessionOrigin;
  sender: string | null;
  /** JSON of a `LastMessage`. */
  last_message: string | null;
  last_from: LastMessage['from'] | null;
  /** 1: its last turn failed. */
  has_failed: number;
  /** What is searched: title, last message and sender, folded. */
  words: string;
}

/** Columns of a session that versions before them neither know nor write. */
export type SessionDetails = Pick<SessionsTable, 'sender' | 'last_message' | 'last_from' | 'has_failed' | 'words'>;

/** Ended turns; the others are in the inbox and in Redis. */
export interface TurnsTable extends TenantRow {
  id: string;
  session_id: string;
  /** With `session_id` names one session: a later one of the same contact has the same id. */
  session_created_at: number;
  agent: string;
  channel: ChannelName;
  status: string;
  accepted_at: number;
  /** Revision of the session when the row was written; an older one does not overwrite a newer one. */
  revision: number;
  /** The turn's record as JSON. */
  record: string;
}

interface UsageNumbers {
  /** YYYY-MM-DD, UTC. */
  day: string;
  agent: string;
  channel: ChannelName;
  model: string;
  calls: number;
  input_tokens: number;
  cached_input_tokens: number;
  output_tokens: number;
  /** Billionths of a dollar: whole numbers add up to the same sum in any order. */
  cost_nano: number | null;
}

export interface UsageTable extends TenantRow, UsageNumbers {
  turn_id: string;
  session_id: string;
  session_created_at: number;
}

/** The last removal of each session id: a late write of the session that was removed must not bring it back. */
export interface RemovalsTable extends TenantRow {
  session_id: string;
  /** Creation time of the removed session. */
  session_created_at: number;
}

/** What removed sessions had used, summed. */
export interface RemovedUsageTable extends TenantRow, UsageNumbers {
  session_id: string;
  session_created_at: number;
  turns: number;
}

export interface SkillsTable {
  account_id: string;
  name: string;
  description: string;
  trigger: string;
  path: string;
}

/**
 * `generation`: rises with each rebuild. `built`: the generation of the last finished one. `boot`: see the SQLite
 * store. `oldest_reader`: see `isTooNew`. `passages`: which passages these are, and which state of them
 * (`PassageState`).
 */
export interface MetaTable {
  account_id: string;
  key: 'generation' | 'built' | 'boot' | 'oldest_reader' | 'passages';
  value: string;
}

/** What the index has read for searching: notes and conversations, with what showed that they had changed. */
export interface PassageSourcesTable {
  account_id: string;
  kind: 'note' | 'session';
  /** Whose it is: `owner`, or the name of a contact's folder. Nothing is read without naming one, but by the owner. */
  owner: string;
  /** Path of a note in its owner's folder, id of a session. */
  ref: string;
  /** A note's size and time, or a session's creation and revision. */
  stamp: string;
}

export interface PassagesTable {
  id: Generated<number>;
  account_id: string;
  kind: 'note' | 'session';
  owner: string;
  ref: string;
  /** Hash of the embedded text. */
  hash: string;
  /** Number among equal passages of one source. */
  nth: number;
  /** Order within the source. */
  seq: number;
  title: string;
  heading: string;
  place: number;
  at: number;
  text: string;
  /** Folded words, and before them terms that name the passage's owner. */
  terms: string;
}

/** Kept by content: a note that is moved or repeated needs no new one. */
export interface PassageVectorsTable {
  account_id: string;
  model: string;
  hash: string;
  vector: Uint8Array;
}

/** A contact of whom there is a file: what a search by name finds the sender of conversations by. */
export interface ContactsTable extends TenantRow {
  /** The hash that the contact's folder is named by. */
  folder: string;
  sender: string;
  /** What is searched: name and sender, folded. */
  words: string;
}

/** What was put of a busy tenant and is not in the lists yet, in no order. */
export interface PendingTable {
  seq: Generated<number>;
  account_id: string;
  /** The turns in it, between spaces. */
  turn_ids: string;
  /** The rows to put, as JSON. */
  rows: string;
}

/** The tables of the first step of the schema. */
export const firstTableNames = [
  'sessions',
  'turns',
  'usage',
  'removals',
  'removed_usage',
  'skills',
  'meta',
] as const satisfies readonly (keyof IndexTables)[];

export const passageTableNames = ['passage_sources', 'passages', 'passage_vectors'] as const satisfies readonly (keyof IndexTables)[];

export const indexTableNames = [...firstTableNames, ...passageTableNames, 'pending', 'contacts'] as const;
