import { z } from 'zod';
import { CanonicalChannel } from '../channels/channel.ts';
import { AgentName } from '../tenants/tenant.ts';

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
