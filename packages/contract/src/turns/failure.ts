import { z } from 'zod';
import { limits } from '../limits.ts';
import { TenantId } from '../tenants/tenant.ts';

/** Longer messages are cut: a cause is named, not told. */
export const FAILURE_MESSAGE_MAX = 300;

const TenantCount = z.object({ tenantId: TenantId, turns: z.int().positive() });
export type TenantTurns = z.infer<typeof TenantCount>;

/** Failed turns with the same cause: the same code, model and message. */
export const FailureGroup = z
  .object({
    code: z.string(),
    /** Whose model was asked last; null where no model failed, and for turns of earlier versions. */
    provider: z.string().nullable(),
    model: z.string().nullable(),
    message: z.string(),
    turns: z.int().positive(),
    /** Those with the most of these turns first. */
    tenants: z.array(TenantCount),
    /** When the first and the last of them ended. */
    firstAt: z.iso.datetime(),
    lastAt: z.iso.datetime(),
    /** The last one. */
    example: z.object({ tenantId: TenantId, turnId: z.string(), contact_id: z.string(), agent: z.string() }),
  })
  .meta({ id: 'FailureGroup' });
export type FailureGroup = z.infer<typeof FailureGroup>;

const time = z.iso.datetime({ offset: true }).max(limits.timeMaxCharacters);

/** Which failed turns are meant: accepted from `since` on, and before `until`. */
export const failureFilter = {
  since: time.optional().meta({ description: 'Accepted from then on. Default: 24 hours ago.' }),
  until: time.optional().meta({ description: 'Accepted before. Default: now.' }),
  tenant: TenantId.optional(),
  code: z.string().min(1).max(64).optional().meta({ description: 'The code of the error.' }),
} as const;

/** POST /ops/api/turns/retry */
export const TurnRetryBody = z
  .strictObject({
    ...failureFilter,
    id: z.string().min(1).max(128).optional().meta({ description: 'Of a turn or of a conversation: these failed turns alone.' }),
    dryRun: z.boolean().default(true).meta({ description: 'Counts, and accepts nothing.' }),
    limit: z.int().min(1).max(50).default(10).meta({ description: 'Turns that are accepted again at most; ask again for more.' }),
    cursor: z.string().min(1).max(512).optional().meta({ description: 'The `nextCursor` of the answer before.' }),
  })
  .meta({ id: 'TurnRetry' });
export type TurnRetryBody = z.infer<typeof TurnRetryBody>;

/**
 * Why a failed turn is not tried again. `not_asked`: it was no request of a client through the API (a message of a
 * channel, a run of a schedule, a sub-agent, …). `collected`: another turn answered for it, and is tried again in its
 * place. `crashed`: it stopped its worker, and its code was not named. `retried`: it was tried again before.
 * `suspended`: its tenant is. `gone`: what it asked is no longer in its conversation. `refused`: it was not accepted.
 */
export const RetrySkip = z.enum(['not_asked', 'collected', 'crashed', 'retried', 'suspended', 'gone', 'refused']);
export type RetrySkip = z.infer<typeof RetrySkip>;

export const TurnsRetried = z
  .object({
    dryRun: z.boolean(),
    /** Accepted again; in a dry run, those that would be. */
    turns: z.int().nonnegative(),
    tenants: z.array(TenantCount),
    retried: z.array(z.object({ tenantId: TenantId, turnId: z.string(), retryOf: z.string() })),
    skipped: z.array(z.object({ reason: RetrySkip, turns: z.int().positive() })),
    /** More may follow; null when nothing does. */
    nextCursor: z.string().nullable(),
  })
  .meta({ id: 'TurnsRetried' });
export type TurnsRetried = z.infer<typeof TurnsRetried>;

/** Adds up groups by their causes: of one page, or of all; the most frequent first. */
export function sumFailures(groups: Iterable<FailureGroup>): FailureGroup[] {
  const sums = new Map<string, FailureGroup>();
  for (const group of groups) {
    const cause = JSON.stringify([group.code, group.model, group.message]);
    const before = sums.get(cause);
    sums.set(cause, before === undefined ? group : add(before, group));
  }
  return [...sums.values()].toSorted((one, other) => other.turns - one.turns || other.lastAt.localeCompare(one.lastAt));
}

function add(one: FailureGroup, other: FailureGroup): FailureGroup {
  const last = other.lastAt > one.lastAt ? other : one;
  return {
    ...last,
    turns: one.turns + other.turns,
    tenants: sumTenantTurns([...one.tenants, ...other.tenants]),
    firstAt: one.firstAt < other.firstAt ? one.firstAt : other.firstAt,
  };
}

/** Adds up counts of one tenant each, the largest first. */
export function sumTenantTurns(counts: readonly TenantTurns[]): TenantTurns[] {
  const sums = new Map<string, number>();
  for (const { tenantId, turns } of counts) sums.set(tenantId, (sums.get(tenantId) ?? 0) + turns);
  return Array.from(sums, ([tenantId, turns]) => ({ tenantId, turns })).toSorted((one, other) => other.turns - one.turns);
}
