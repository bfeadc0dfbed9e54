import { TurnRecord, type RemovedSession, type Skill } from '@concierge/contract';
import type { Insertable } from 'kysely';
import type { RemovalsTable, RemovedUsageTable, SessionsTable, SkillsTable, TurnsTable, UsageTable } from '../database/tables.ts';
import type { IndexableSession } from '../types.ts';
import { toNanoUsd, usageOfTurn } from './usage.ts';

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

export function sessionRow(context: RowContext, session: IndexableSession): Insertable<SessionsTable> {
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

export function usageRows(context: RowContext, session: IndexableSession, turn: TurnRecord): Insertable<UsageTable>[] {
  return usageOfTurn(session, turn).map((usage) => ({
    account_id: context.tenantId,
    turn_id: storable(turn.id),
    session_id: session.id,
    session_created_at: Date.parse(session.createdAt),
    day: usage.day,
    agent: usage.agent,
    channel: usage.channel,
    model: storable(usage.model),
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
    model: storable(usage.model),
    turns: usage.turns,
    calls: usage.calls,
    input_tokens: usage.inputTokens,
    cached_input_tokens: usage.cachedInputTokens,
    output_tokens: usage.outputTokens,
    cost_nano: toNanoUsd(usage.costUsd),
    generation: context.generation,
  }));
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
