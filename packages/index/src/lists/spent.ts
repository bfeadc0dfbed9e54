import { DAY_MS } from '@concierge/contract';
import { sql, type Kysely, type RawBuilder } from 'kysely';
import type { IndexDialect, IndexTables } from '../database/tables.ts';
import { OWN_KEY_MARK } from './rows.ts';

/** Milliseconds since the epoch; the end is left out. */
export interface SpentQuery {
  readonly fromMs: number;
  readonly toMs: number;
}

/**
 * Input and output tokens, and billionths of a dollar; calls without a known price add nothing to those, and calls with
 * the tenant's own key add nothing at all.
 */
export interface Spent {
  readonly tokens: number;
  readonly costNano: number;
}

interface Asked {
  readonly db: Kysely<IndexTables>;
  readonly dialect: IndexDialect;
  readonly tenantId: string;
}

/**
 * Usage is kept by days in UTC. Where a period begins or ends within one, the records of that day's turns decide; what
 * removed sessions used, of which nothing but the day is known, counts where noon of that day does.
 */
export async function selectSpent({ db, dialect, tenantId }: Asked, { fromMs, toMs }: SpentQuery): Promise<Spent> {
  const [wholeFromMs, wholeToMs] = [Math.ceil(fromMs / DAY_MS) * DAY_MS, Math.floor(toMs / DAY_MS) * DAY_MS];
  // PostgreSQL's own readers of JSON refuse an escaped U+0000, or half a pair, anywhere in a record. No text in it can
  // look like this: quotes in texts are escaped.
  const endedAt = dialect === 'sqlite' ? sql`json_extract(t.record, '$.endedAt')` : sql`substring(t.record from '"endedAt":"([^"]*)"')`;
  const within = sql`${endedAt} >= ${new Date(fromMs).toISOString()} and ${endedAt} < ${new Date(toMs).toISOString()}`;
  const parted = [...(wholeFromMs === fromMs ? [] : [wholeFromMs - DAY_MS]), ...(wholeToMs === toMs ? [] : [wholeToMs])];
  const partly = Array.from(
    new Set(parted),
    (dayMs) => sql`union all
      select u.input_tokens, u.output_tokens, u.cost_nano from usage as u
      join turns as t on t.account_id = u.account_id and t.id = u.turn_id
      where u.account_id = ${tenantId} and ${isOperators(sql`u.model`)} and u.day = ${toDay(dayMs)} and ${within}`,
  );
  const { rows } = await sql<Spent>`
    select cast(coalesce(sum(input_tokens + output_tokens), 0) as bigint) as tokens,
      cast(coalesce(sum(cost_nano), 0) as bigint) as "costNano"
    from (
      select input_tokens, output_tokens, cost_nano from usage
      where account_id = ${tenantId} and ${isOperators(sql`model`)} and day >= ${toDay(wholeFromMs)} and day < ${toDay(wholeToMs)}
      ${sql.join(partly, sql` `)}
      union all
      select input_tokens, output_tokens, cost_nano from removed_usage
      where account_id = ${tenantId} and ${isOperators(sql`model`)} and day >= ${dayOfNoon(fromMs)} and day < ${dayOfNoon(toMs)}
    ) as used`.execute(db);
  return rows[0] ?? { tokens: 0, costNano: 0 };
}

/** Calls with the tenant's own key cost the operator nothing. */
function isOperators(model: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`${model} not like ${`%${OWN_KEY_MARK}`}`;
}

/** The first day whose noon is not before this moment. */
function dayOfNoon(ms: number): string {
  return toDay(Math.ceil((ms - DAY_MS / 2) / DAY_MS) * DAY_MS);
}

function toDay(ms: number): string {
  return new Date(ms).toISOString().slice(0, 'YYYY-MM-DD'.length);
}
