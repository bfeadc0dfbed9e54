import { clip, findLastMessage, limits, TurnRecord, type RemovedSession, type Skill, type UsageRow } from '@concierge/contract';
import type { Insertable } from 'kysely';
import type {
  ContactsTable,
  RemovalsTable,
  RemovedUsageTable,
  SessionDetails,
  SessionsTable,
  SkillsTable,
  TurnsTable,
  UsageTable,
} from '../database/tables.ts';
import type { IndexableSession, NamedContact } from '../types.ts';

/** Where and when a row is written. */
export interface RowContext {
  readonly tenantId: string;
  readonly generation: number;
}

/**
 * PostgreSQL refuses U+0000 and lone surrogates, SQLite alters them each in its way: the index keeps U+FFFD in their
 * place, in both.
 */
export function storable(text: string): string {
  return text.isWellFormed() && !text.includes('\0') ? text : text.toWellFormed().replaceAll('\0', '\uFFFD');
}

/** What every version writes of a session. */
export type SessionBase = Omit<Insertable<SessionsTable>, keyof SessionDetails>;

export function sessionRow(context: RowContext, session: IndexableSession): SessionBase {
  return {
    account_id: context.tenantId,
    id: session.id,
    agent: session.agent,
    channel: session.channel,
    origin: session.origin ?? 'user',
    title: storable(session.title),
    message_count: session.messageCount,
    revision: session.revision,
    created_at: Date.parse(session.createdAt),
    updated_at: Date.parse(session.updatedAt),
    generation: context.generation,
  };
}

/** Of a session whose messages the caller has not got, there is none. */
export const noDetails: SessionDetails = { sender: null, last_message: null, last_from: null, has_failed: 0, words: '' };

/** What lists show and search of a session. In the order of the columns. */
export function sessionDetails(session: IndexableSession, turns: readonly TurnRecord[]): SessionDetails {
  const found = findLastMessage(session.messages ?? []);
  const last = found && { ...found, text: storable(clip(found.text, limits.excerptMaxCharacters - 1)) };
  const sender = session.sender ?? null;
  return {
    sender: sender === null ? null : storable(sender),
    last_message: last === null ? null : JSON.stringify(last),
    last_from: last?.from ?? null,
    has_failed: Number(turns.at(-1)?.status === 'failed'),
    words: storable(foldWords([session.title, last?.text ?? '', sender ?? ''].join('\n'))),
  };
}

/** As texts are compared: without case and forms of one character. */
export function foldWords(text: string): string {
  return text.normalize('NFKC').toLowerCase();
}

export function turnRow(context: RowContext, session: IndexableSession, turn: TurnRecord): Insertable<TurnsTable> {
  return {
    account_id: context.tenantId,
    id: storable(turn.id),
    session_id: session.id,
    session_created_at: Date.parse(session.createdAt),
    agent: session.agent,
    channel: session.channel,
    status: turn.status,
    accepted_at: Date.parse(turn.acceptedAt),
    revision: session.revision,
    // JSON escapes what PostgreSQL would refuse, so the record comes back as it was. In the order of the schema, in
    // which files are read: a rebuild compares texts, and a fresh record has its fields as they were made.
    record: JSON.stringify(TurnRecord.parse(turn)),
    generation: context.generation,
  };
}

/** No reference to a model has a space in it. Versions that do not know the mark show it as part of the name. */
export const OWN_KEY_MARK = ' own-key';

/** A model of the tables of usage: what was called with the tenant's own key is counted apart. */
function toUsageModel({ model, ownKey }: Pick<UsageRow, 'model' | 'ownKey'>): string {
  return storable(model) + (ownKey === true ? OWN_KEY_MARK : '');
}

export function readUsageModel(stored: string): Pick<UsageRow, 'model' | 'ownKey'> {
  return stored.endsWith(OWN_KEY_MARK) ? { model: stored.slice(0, -OWN_KEY_MARK.length), ownKey: true } : { model: stored };
}

export function usageRows(context: RowContext, session: IndexableSession, turn: TurnRecord): Insertable<UsageTable>[] {
  return usageOfTurn(session, turn).map((usage) => ({
    account_id: context.tenantId,
    turn_id: storable(turn.id),
    session_id: session.id,
    session_created_at: Date.parse(session.createdAt),
    day: usage.day,
    agent: usage.agent,
    channel: usage.channel,
    model: toUsageModel(usage),
    calls: usage.calls,
    input_tokens: usage.inputTokens,
    cached_input_tokens: usage.cachedInputTokens,
    output_tokens: usage.outputTokens,
    cost_nano: toNanoUsd(usage.costUsd),
    generation: context.generation,
  }));
}

export function removalRow(context: RowContext, removed: RemovedSession): Insertable<RemovalsTable> {
  return {
    account_id: context.tenantId,
    session_id: removed.id,
    session_created_at: Date.parse(removed.createdAt),
    generation: context.generation,
  };
}

export function removedUsageRows(context: RowContext, removed: RemovedSession): Insertable<RemovedUsageTable>[] {
  return removed.usage.map((usage) => ({
    account_id: context.tenantId,
    session_id: removed.id,
    session_created_at: Date.parse(removed.createdAt),
    day: usage.day,
    agent: usage.agent,
    channel: usage.channel,
    model: toUsageModel(usage),
    turns: usage.turns,
    calls: usage.calls,
    input_tokens: usage.inputTokens,
    cached_input_tokens: usage.cachedInputTokens,
    output_tokens: usage.outputTokens,
    cost_nano: toNanoUsd(usage.costUsd),
    generation: context.generation,
  }));
}

export function contactRow({ tenantId, generation }: RowContext, { folder, sender, displayName }: NamedContact): Insertable<ContactsTable> {
  const words = storable(foldWords(`${displayName ?? ''}\n${sender}`));
  return { account_id: tenantId, folder, sender: storable(sender), words, generation };
}

export function skillRow(tenantId: string, skill: Skill): Insertable<SkillsTable> {
  return {
    account_id: tenantId,
    name: storable(skill.name),
    description: storable(skill.description),
    trigger: storable(skill.trigger),
    path: storable(skill.path),
  };
}

const NANO = 1e9;

function toNanoUsd(costUsd: number | null): number | null {
  return costUsd === null ? null : Math.round(costUsd * NANO);
}

export function toUsd(costNano: number | null): number | null {
  return costNano === null ? null : costNano / NANO;
}

/** What one turn used, one row per model; on the day, in UTC, on which it ended. */
export function usageOfTurn(session: Pick<IndexableSession, 'agent' | 'channel'>, turn: TurnRecord): UsageRow[] {
  const day = new Date(turn.endedAt).toISOString().slice(0, 'YYYY-MM-DD'.length);
  const rows = turn.models.map((used) => ({
    day,
    agent: session.agent,
    channel: session.channel,
    model: used.model,
    turns: 1,
    calls: used.calls,
    inputTokens: used.inputTokens,
    cachedInputTokens: used.cachedInputTokens,
    outputTokens: used.outputTokens,
    costUsd: used.costUsd,
    ...(used.ownKey === true && { ownKey: used.ownKey }),
  }));
  return turn.models.length < 2 ? rows : sum(rows).map((row) => ({ ...row, turns: 1 }));
}

/**
 * What must stay in the tenant's files of a session that is removed, for `TenantIndex.removeSession` and for the
 * rebuilds to come.
 */
export function toRemovedSession(session: IndexableSession, turns: Iterable<TurnRecord>, removedAt: Date): RemovedSession {
  const usage = sum(Array.from(turns, (turn) => usageOfTurn(session, turn)).flat());
  return { id: session.id, createdAt: session.createdAt, removedAt: removedAt.toISOString(), usage };
}

/** By day, agent, channel, model and key. A price that is unknown adds nothing; a sum of none but those is unknown. */
function sum(rows: readonly UsageRow[]): UsageRow[] {
  const sums = new Map<string, UsageRow>();
  for (const row of rows) {
    const key = JSON.stringify([row.day, row.agent, row.channel, row.model, row.ownKey === true]);
    const before = sums.get(key);
    sums.set(key, before === undefined ? row : add(before, row));
  }
  return [...sums.values()];
}

function add(one: UsageRow, other: UsageRow): UsageRow {
  const [costOne, costOther] = [toNanoUsd(one.costUsd), toNanoUsd(other.costUsd)];
  return {
    ...one,
    turns: one.turns + other.turns,
    calls: one.calls + other.calls,
    inputTokens: one.inputTokens + other.inputTokens,
    cachedInputTokens: one.cachedInputTokens + other.cachedInputTokens,
    outputTokens: one.outputTokens + other.outputTokens,
    costUsd: costOne === null && costOther === null ? null : toUsd((costOne ?? 0) + (costOther ?? 0)),
  };
}
