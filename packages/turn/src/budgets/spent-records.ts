import type { ModelUsage, TurnStep } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';
import { nothing, toNanos, type Amount, type BudgetPeriod } from './budget-rules.ts';

/** How often the records are read again because a turn ended meanwhile. */
const READS_MAX = 5;

/** What the records say that a period has cost, with the share of turns that have not ended apart. */
export interface SpentByRecords extends Amount {
  readonly turns: Readonly<Record<string, Amount>>;
}

/**
 * Sums up what is on disk: the turns that ended in the period, and what the journals of running ones hold. `late`:
 * turns that have settled calls while there was no sum. A turn counts once: one that ends while this reads makes it
 * read again.
 */
export async function sumRecords(
  scope: TenantScope,
  { fromMs, untilMs }: Pick<BudgetPeriod, 'fromMs' | 'untilMs'>,
  late: Readonly<Record<string, Amount>>,
): Promise<SpentByRecords> {
  for (let reads = 1; ; reads += 1) {
    const turns = await readRunningTurns(scope, late);
    const { tokens, costNano: nanos } = await scope.index.spent({ fromMs, toMs: untilMs });
    if (reads === READS_MAX || (await haveNotEnded(scope, Object.keys(turns)))) return { tokens, nanos, turns };
  }
}

async function readRunningTurns(scope: TenantScope, late: Readonly<Record<string, Amount>>): Promise<Record<string, Amount>> {
  const turns: Record<string, Amount> = {};
  for (const turnId of new Set([...(await scope.inbox.journaledTurnIds()), ...Object.keys(late)])) {
    if ((await scope.index.findTurn(turnId)) !== undefined) continue;
    const journaled = sumSteps(await scope.inbox.readJournal(turnId));
    const settled = late[turnId] ?? nothing;
    turns[turnId] = { tokens: Math.max(journaled.tokens, settled.tokens), nanos: Math.max(journaled.nanos, settled.nanos) };
  }
  return turns;
}

async function haveNotEnded(scope: TenantScope, turnIds: readonly string[]): Promise<boolean> {
  for (const turnId of turnIds) if ((await scope.index.findTurn(turnId)) !== undefined) return false;
  return true;
}

function sumSteps(steps: readonly TurnStep[]): Amount {
  const used = steps.map((step) => ('usage' in step ? step.usage : undefined));
  return sumUsage(used.filter((usage) => usage !== null && usage !== undefined));
}

/** Tokens and cost of model calls that the operator pays; a call without a known price costs nothing. */
export function sumUsage(usage: readonly ModelUsage[]): Amount {
  let [tokens, nanos] = [0, 0];
  for (const one of usage) {
    if (one.ownKey === true) continue;
    tokens += one.inputTokens + one.outputTokens;
    nanos += toNanos(one.costUsd ?? 0);
  }
  return { tokens, nanos };
}
