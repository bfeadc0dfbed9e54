import type { RemovedSession, TurnRecord, UsageRow } from '@concierge/contract';
import type { IndexableSession } from '../types.ts';

const NANO = 1e9;

export function toNanoUsd(costUsd: number | null): number | null {
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

/** By day, agent, channel and model. A price that is unknown adds nothing; a sum of none but those is unknown. */
function sum(rows: readonly UsageRow[]): UsageRow[] {
  const sums = new Map<string, UsageRow>();
  for (const row of rows) {
    const key = JSON.stringify([row.day, row.agent, row.channel, row.model]);
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
