import type {
  ChannelName,
  LastMessage,
  RemovedSession,
  Session,
  SessionListItem,
  SessionOrigin,
  Skill,
  TurnRecord,
  TurnStatus,
  TurnView,
  UsageRow,
} from '@concierge/contract';

/**
 * What the index keeps of a session; a whole `Session` is one of these. Times are ISO 8601, kept to the millisecond.
 */
export type IndexableSession = Pick<
  Session,
  'id' | 'agent' | 'channel' | 'origin' | 'revision' | 'createdAt' | 'updatedAt' | 'title' | 'messageCount'
> &
  Partial<Pick<Session, 'sender' | 'messages'>>;

/** A row of the list, as far as the session's own file tells: names of contacts and handoffs are elsewhere. */
export interface IndexedSession extends Omit<SessionListItem, 'contactName' | 'state' | 'pinned' | 'assignee'> {
  /** Its last turn failed. */
  readonly hasFailed: boolean;
}

/** One session as the files have it. */
export interface SourceSession {
  readonly session: IndexableSession;
  /** Turns of the session file and its history file, each once. */
  readonly turns: readonly TurnRecord[];
}

/** A contact of whom there is a file. */
export interface NamedContact {
  /** The hash that its folder is named by. */
  readonly folder: string;
  readonly sender: string;
  readonly displayName: string | null;
}

/**
 * One tenant's files as the index is rebuilt from. Each iterator is read once, in this order; memory stays bounded by
 * one session at a time. A file that cannot be read is the source's to report and skip: what throws ends the rebuild,
 * and the old index stays.
 */
export interface IndexSource {
  sessions(): AsyncIterable<SourceSession>;
  /** What stayed of removed sessions. */
  removed(): AsyncIterable<RemovedSession>;
  contacts(): AsyncIterable<NamedContact>;
  skills(): Promise<readonly Skill[]>;
  /** Called before names are searched: puts those whose writers could not. Never rejects. */
  catchUpContacts(): Promise<void>;
}

/** How many rows of one table differed from the files. */
export interface TableDrift {
  /** In the files, not in the index. */
  readonly added: number;
  readonly changed: number;
  /** In the index, not in the files. */
  readonly removed: number;
}

/** What a rebuild found and has put right. All zero: the index matched the files. */
export interface DriftReport {
  readonly sessions: TableDrift;
  readonly turns: TableDrift;
  /** Usage of turns and of removed sessions. */
  readonly usage: TableDrift;
  readonly skills: TableDrift;
  readonly contacts: TableDrift;
}

export type SomeIds = { readonly only: readonly string[] } | { readonly without: readonly string[] };

export interface SessionsQuery {
  readonly limit: number;
  readonly agent?: string | undefined;
  /** Only sessions with one of these origins. */
  readonly origin?: readonly SessionOrigin[] | undefined;
  readonly channel?: ChannelName | undefined;
  readonly sender?: string | undefined;
  /** A part of the title, the last message, the sender or the name of the contact; or any session of these ids. */
  readonly words?: { readonly text: string; readonly ids?: readonly string[] } | undefined;
  /** Each: only these; or all but these. */
  readonly ids?: readonly SomeIds[] | undefined;
  /** None of the admin agent's. */
  readonly withContacts?: boolean | undefined;
  /** Which side has the last word. */
  readonly lastFrom?: readonly LastMessage['from'][] | undefined;
  readonly hasFailed?: boolean | undefined;
  /** Milliseconds since the epoch. */
  readonly updatedBeforeMs?: number | undefined;
  readonly cursor?: string | undefined;
}

/** Contacts by the last use of their conversations. */
export interface ContactsQuery {
  readonly limit: number;
  /** A part of the sender or the name, in any case; or one of these senders. */
  readonly words?: { readonly text: string; readonly senders: readonly string[] } | undefined;
  readonly cursor?: string | undefined;
}

/** A sender, and what the conversations with it have together. */
export interface IndexedContact {
  readonly sender: string;
  readonly conversations: number;
  readonly lastSeenAt: string;
}

export interface TurnsQuery {
  readonly limit: number;
  readonly status?: TurnStatus | undefined;
  /** Only this session. */
  readonly contact_id?: string | undefined;
  readonly agent?: string | undefined;
  readonly channel?: ChannelName | undefined;
  readonly origin?: TurnView['origin'] | undefined;
  /** Only turns that failed with this code. */
  readonly code?: string | undefined;
  /** Only the turn, or the turns of the session, with this id. */
  readonly id?: string | undefined;
  readonly cursor?: string | undefined;
}

/** Failed turns by the time of their acceptance, in milliseconds since the epoch; the end is left out. */
export interface FailedTurnsQuery {
  readonly fromMs: number;
  readonly toMs: number;
  readonly limit: number;
  readonly cursor?: string | undefined;
}

/** Days in UTC, as YYYY-MM-DD, both included; one that is left out is no bound. */
export interface UsageQuery {
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

/** An ended turn, with the session it belongs to. */
export interface IndexedTurn {
  readonly sessionId: string;
  readonly agent: string;
  readonly channel: UsageRow['channel'];
  readonly record: TurnRecord;
}

/** One session to put, with the turns to write: those named by `turnIds`, otherwise all that it carries. */
export interface SessionPut {
  readonly session: IndexableSession & { readonly turns: readonly TurnRecord[] };
  readonly turnIds?: readonly string[] | undefined;
}
