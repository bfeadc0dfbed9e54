import { z } from 'zod';
import { CanonicalChannel } from '../channels/channel.ts';
import { AppError } from '../errors/app-error.ts';
import { AgentName } from '../tenants/tenant.ts';
import { DAY_MS } from '../values/values.ts';

const count = z.int().nonnegative();

/** A calendar day in UTC: the one on which a turn ended. */
export const UsageDay = z.iso.date();

/** What one model cost one agent on one channel on one day. */
export const UsageRow = z
  .object({
    day: UsageDay,
    agent: AgentName,
    channel: CanonicalChannel,
    /** As `provider/model`. */
    model: z.string(),
    /** Turns that called this model. */
    turns: count,
    /** Calls of the model. */
    calls: count,
    inputTokens: count,
    /** How many of `inputTokens` the provider had cached. */
    cachedInputTokens: count,
    outputTokens: count,
    /** US dollars, exact to a billionth; null when no price is known. */
    costUsd: z.number().nonnegative().nullable(),
    /** Called with the tenant's own key: its owner pays, and no budget counts it. */
    ownKey: z.literal(true).optional(),
  })
  .meta({ id: 'UsageRow' });
export type UsageRow = z.infer<typeof UsageRow>;

/**
 * What stays in the tenant's files of a removed session: its usage, so that a bill does not change, and none of its
 * messages.
 */
export const RemovedSession = z.object({
  id: z.string(),
  /** Creation time of the removed session; a later session of the same contact has the same id and another time. */
  createdAt: z.iso.datetime(),
  removedAt: z.iso.datetime(),
  usage: z.array(UsageRow),
  /** Its newest turns: what a write-ahead log still has of them is not answered again. */
  turns: z.array(z.string()).optional(),
});
export type RemovedSession = z.infer<typeof RemovedSession>;

/** What rows of usage come to; `costUsd` sums those with a known price, and is null when none has one. */
export type UsageTotal = Pick<UsageRow, 'turns' | 'calls' | 'inputTokens' | 'cachedInputTokens' | 'outputTokens' | 'costUsd'>;

export function totalUsage(rows: readonly UsageRow[]): UsageTotal {
  const total = { turns: 0, calls: 0, inputTokens: 0, cachedInputTokens: 0, outputTokens: 0 };
  let costUsd: number | null = null;
  for (const row of rows) {
    total.turns += row.turns;
    total.calls += row.calls;
    total.inputTokens += row.inputTokens;
    total.cachedInputTokens += row.cachedInputTokens;
    total.outputTokens += row.outputTokens;
    if (row.costUsd !== null) costUsd = (costUsd ?? 0) + row.costUsd;
  }
  return { ...total, costUsd };
}

const DEFAULT_DAYS = 30;

/**
 * Days from `from` to `to`, both included: up to today and 30 of them where nothing else is asked for.
 * @throws AppError invalid_request, when `from` is after `to`
 */
export function usageDays(
  asked: { readonly from?: string | undefined; readonly to?: string | undefined },
  nowMs: number,
): { from: string; to: string } {
  const to = asked.to ?? toDay(nowMs);
  const from = asked.from ?? toDay(Date.parse(to) - (DEFAULT_DAYS - 1) * DAY_MS);
  if (from > to) throw new AppError('invalid_request', undefined, { errors: [{ path: 'from', message: 'must not be after `to`' }] });
  return { from, to };
}

function toDay(ms: number): string {
  return new Date(ms).toISOString().slice(0, 'YYYY-MM-DD'.length);
}

/** What a tenant used in some days, with its own keys for model providers, too. */
export const UsageOfTenant = z
  .object({
    tenantId: z.string(),
    turns: count,
    calls: count,
    inputTokens: count,
    cachedInputTokens: count,
    outputTokens: count,
    costUsd: z.number().nonnegative().nullable().meta({ description: 'Null: no price is known.' }),
  })
  .meta({ id: 'UsageOfTenant' });
export type UsageOfTenant = z.infer<typeof UsageOfTenant>;
