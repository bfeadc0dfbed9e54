import { LastMessage, TurnRecord, type ChannelName, type Skill, type TurnView, type UsageRow } from '@concierge/contract';
import { sql, type ExpressionBuilder, type Kysely } from 'kysely';
import type { CompiledQueries } from '../database/compiled-queries.ts';
import { CursorPages, type Page } from '../cursor.ts';
import { selectNamed, toLikePattern } from './contacts.ts';
import { findPendingTurn } from './write-sessions.ts';
import { foldWords, readUsageModel, storable, toUsd } from './rows.ts';
import type { IndexTables } from '../database/tables.ts';
import type { FailedTurnsQuery, IndexedSession, IndexedTurn, SessionsQuery, TurnsQuery, UsageQuery } from '../types.ts';

type Db = Kysely<IndexTables>;

const sessionPages = new CursorPages<{ readonly updated_at: number; readonly id: string }>('sessions', (row) => ({
  atMs: row.updated_at,
  id: row.id,
}));
const turnPages = new CursorPages<{ readonly accepted_at: number; readonly id: string }>('turns', (row) => ({
  atMs: row.accepted_at,
  id: row.id,
}));

/** One row more than asked for shows whether there is a next page. */
export async function selectSessions(db: Db, tenantId: string, query: SessionsQuery): Promise<Page<IndexedSession>> {
  let select = narrowSessions(db, tenantId, query)
    .select(['id', 'agent', 'channel', 'origin', 'title', 'message_count', 'updated_at', 'sender', 'last_message', 'has_failed'])
    .orderBy('updated_at', 'desc')
    .orderBy('id', 'desc')
    .limit(query.limit + 1);
  const after = sessionPages.readCursor(query.cursor);
  if (after !== null) {
    select = select.where(sql<boolean>`(updated_at, id) < (${after.atMs}, ${after.id})`);
  }
  const rows = await select.execute();
  const page = sessionPages.cutPage(rows, query);
  return {
    ...page,
    items: page.items.map((row) => ({
      id: row.id,
      updatedAt: new Date(row.updated_at).toISOString(),
      agent: row.agent,
      channel: row.channel,
      origin: row.origin,
      title: row.title,
      messageCount: row.message_count,
      sender: row.sender,
      lastMessage: row.last_message === null ? null : LastMessage.parse(JSON.parse(row.last_message)),
      hasFailed: row.has_failed === 1,
    })),
  };
}

function narrowSessions(db: Db, tenantId: string, query: SessionsQuery) {
  let select = db.selectFrom('sessions').where('account_id', '=', tenantId);
  for (const name of ['agent', 'channel'] as const) {
    const wanted = query[name];
    if (wanted !== undefined) select = select.where(name, '=', wanted);
  }
  if (query.withContacts === true) select = select.where('agent', '<>', 'admin');
  if (query.origin !== undefined) select = select.where('origin', 'in', query.origin);
  if (query.sender !== undefined) select = select.where('sender', '=', storable(query.sender));
  if (query.hasFailed !== undefined) select = select.where('has_failed', '=', Number(query.hasFailed));
  if (query.lastFrom !== undefined) select = select.where('last_from', 'in', query.lastFrom);
  if (query.updatedBeforeMs !== undefined) select = select.where('updated_at', '<', query.updatedBeforeMs);
  const { ids = [], words } = query;
  if (ids.length > 0) select = select.where((eb) => eb.and(ids.map((some) => isAmong(eb, some))));
  return words === undefined ? select : select.where((eb) => hasWords(eb, tenantId, words));
}

type SessionsBuilder = ExpressionBuilder<IndexTables, 'sessions'>;

/** A list without any id is no SQL; no session has the empty one. */
function isAmong(eb: SessionsBuilder, some: NonNullable<SessionsQuery['ids']>[number]) {
  return 'only' in some ? eb('id', 'in', ['', ...some.only]) : eb('id', 'not in', ['', ...some.without]);
}

function hasWords(eb: SessionsBuilder, tenantId: string, { text, ids = [] }: NonNullable<SessionsQuery['words']>) {
  const pattern = toLikePattern(storable(foldWords(text)));
  return eb.or([
    sql<boolean>`sessions.words like ${pattern} escape '\\'`,
    eb('sender', 'in', selectNamed(eb, tenantId, text)),
    eb('id', 'in', ['', ...ids]),
  ]);
}

export async function selectTurns(db: Db, tenantId: string, query: TurnsQuery): Promise<Page<TurnView>> {
  let select = db
    .selectFrom('turns')
    .select(['id', 'session_id', 'agent', 'channel', 'accepted_at', 'record'])
    .where('account_id', '=', tenantId)
    .orderBy('accepted_at', 'desc')
    .orderBy('id', 'desc')
    .limit(query.limit + 1);
  if (query.status !== undefined) select = select.where('status', '=', query.status);
  if (query.contact_id !== undefined) select = select.where('session_id', '=', storable(query.contact_id));
  if (query.agent !== undefined) select = select.where('agent', '=', query.agent);
  if (query.channel !== undefined) select = select.where('channel', '=', query.channel);
  // In the order of the schema, in which records are written; quotes inside a text are escaped.
  if (query.origin !== undefined) select = select.where('record', 'like', toLikePattern(`"origin":"${query.origin}"`));
  if (query.id !== undefined) {
    const id = storable(query.id);
    select = select.where((where) => where.or([where('id', '=', id), where('session_id', '=', id)]));
  }
  if (query.code !== undefined) {
    // A record is JSON in the order of its schema. PostgreSQL's own readers of JSON refuse an escaped U+0000 anywhere.
    const written = toLikePattern(`"error":{"code":${JSON.stringify(query.code)}`);
    select = select.where('status', '=', 'failed').where(sql<boolean>`record like ${written} escape '\\'`);
  }
  // What the partial index asks for, word for word.
  if (query.code !== undefined || (query.status !== undefined && query.status !== 'done'))
    select = select.where('status', '<>', sql.lit('done'));
  const after = turnPages.readCursor(query.cursor);
  if (after !== null) {
    select = select.where(sql<boolean>`(accepted_at, id) < (${after.atMs}, ${after.id})`);
  }
  const rows = await select.execute();
  const page = turnPages.cutPage(rows, query);
  return {
    ...page,
    items: page.items.map((row) =>
      toTurnView({ sessionId: row.session_id, agent: row.agent, channel: row.channel, record: parseRecord(row.record) }),
    ),
  };
}

/** Failed turns, last accepted first: by the index of turns that are not done. */
export async function selectFailedTurns(db: Db, tenantId: string, query: FailedTurnsQuery): Promise<Page<IndexedTurn>> {
  const after = turnPages.readCursor(query.cursor);
  let select = db
    .selectFrom('turns')
    .select(['id', 'session_id', 'agent', 'channel', 'accepted_at', 'record'])
    .where('account_id', '=', tenantId)
    .where('status', '=', 'failed')
    .where('status', '<>', sql.lit('done'))
    .where('accepted_at', '>=', query.fromMs)
    .where('accepted_at', '<', query.toMs)
    .orderBy('accepted_at', 'desc')
    .orderBy('id', 'desc')
    .limit(query.limit + 1);
  if (after !== null) select = select.where(sql<boolean>`(accepted_at, id) < (${after.atMs}, ${after.id})`);
  const page = turnPages.cutPage(await select.execute(), query);
  return {
    ...page,
    items: page.items.map(({ session_id: sessionId, agent, channel, record }) => ({
      sessionId,
      agent,
      channel,
      record: parseRecord(record),
    })),
  };
}

/** A turn that was found; one that is not in the lists yet is as it was put, and what was put since may differ. */
export interface FoundTurn {
  readonly turn: IndexedTurn;
  readonly isPending: boolean;
}

/** Asked for every message that has a channel's id: one query. */
export async function selectTurn(
  db: Db,
  queries: CompiledQueries,
  key: { readonly tenantId: string; readonly turnId: string },
): Promise<FoundTurn | undefined> {
  const [tenantId, turnId] = [key.tenantId, storable(key.turnId)];
  const query = queries.query('turn', [tenantId, turnId, tenantId, `% ${turnId} %`], () =>
    db
      .selectFrom('turns')
      .select(['session_id', 'agent', 'channel', 'record', sql<number>`0`.as('pending')])
      .where('account_id', '=', tenantId)
      .where('id', '=', turnId)
      .unionAll(
        db
          .selectFrom('pending')
          .select([
            'turn_ids as session_id',
            'turn_ids as agent',
            sql<ChannelName>`turn_ids`.as('channel'),
            'rows as record',
            sql<number>`1`.as('pending'),
          ])
          .where('account_id', '=', tenantId)
          .where('turn_ids', 'like', `% ${turnId} %`),
      )
      .compile(),
  );
  const { rows } = await db.executeQuery(query);
  const pending = rows.find((row) => row.pending === 1);
  const row = pending === undefined ? rows[0] : findPendingTurn(pending.record, turnId);
  if (row === undefined) return undefined;
  const { session_id: sessionId, agent, channel, record } = row;
  return { turn: { sessionId, agent, channel, record: parseRecord(record) }, isPending: pending !== undefined };
}

/** An ended turn as lists show it: no steps, nothing internal. */
export function toTurnView(turn: IndexedTurn): TurnView {
  const { record } = turn;
  return {
    id: record.id,
    contact_id: turn.sessionId,
    agent: turn.agent,
    channel: turn.channel,
    origin: record.origin,
    ...(record.parentTurnId !== undefined && { parentTurnId: record.parentTurnId }),
    ...(record.joinedTo !== undefined && { joinedTo: record.joinedTo }),
    status: record.status,
    acceptedAt: record.acceptedAt,
    startedAt: record.startedAt,
    firstTextAt: record.firstTextAt,
    endedAt: record.endedAt,
    attempts: record.attempts,
    usage: record.usage,
    costUsd: sumCost(record.models),
    finishReason: record.finishReason,
    error: record.error,
  };
}

/** US dollars; a price that is unknown adds nothing, and a sum of none but those is null. */
function sumCost(models: TurnRecord['models']): number | null {
  const known = models.flatMap(({ costUsd }) => (costUsd === null ? [] : [costUsd]));
  return known.length === 0 ? null : known.reduce((sum, cost) => sum + cost, 0);
}

export async function selectSkills(db: Db, tenantId: string): Promise<Skill[]> {
  const rows = await db
    .selectFrom('skills')
    .select(['name', 'description', 'trigger', 'path'])
    .where('account_id', '=', tenantId)
    .orderBy('name')
    .execute();
  return rows.map((row) => ({ ...row }));
}

export async function selectUsage(db: Db, tenantId: string, query: UsageQuery): Promise<UsageRow[]> {
  const within = sql<boolean>`account_id = ${tenantId} and day >= ${query.from ?? ''} and day <= ${query.to ?? '9999-12-31'}`;
  const numbers = sql`day, agent, channel, model, calls, input_tokens, cached_input_tokens, output_tokens, cost_nano`;
  const total = (column: string) => sql<number>`cast(sum(${sql.ref(column)}) as bigint)`;
  const { rows } = await sql<Omit<UsageRow, 'costUsd'> & { costNano: number | null }>`
    select day, agent, channel, model, ${total('turns')} as turns, ${total('calls')} as calls,
      ${total('input_tokens')} as "inputTokens", ${total('cached_input_tokens')} as "cachedInputTokens",
      ${total('output_tokens')} as "outputTokens", ${total('cost_nano')} as "costNano"
    from (
      select ${numbers}, 1 as turns from usage where ${within}
      union all
      select ${numbers}, turns from removed_usage where ${within}
    ) as used
    group by day, agent, channel, model
    order by day, agent, channel, model`.execute(db);
  return rows.map(({ costNano, model, ...row }) => ({ ...row, ...readUsageModel(model), costUsd: toUsd(costNano) }));
}

function parseRecord(json: string): TurnRecord {
  return TurnRecord.parse(JSON.parse(json));
}
