import { z } from 'zod';
import { Actor } from './actor.ts';
import { ContactId } from './chat.ts';
import { limits } from './limits.ts';

export const HandoffReason = z.string().trim().min(1).max(limits.handoffReasonMaxCharacters);
const HandoffId = z.string().regex(/^h_[0-9a-f]{32}$/u);

/** tenants/<id>/handoffs/<sessionId>.json: the last time a person was asked to take the conversation over. */
export const Handoff = z.strictObject({
  version: z.literal(1),
  id: HandoffId,
  sessionId: ContactId,
  reason: HandoffReason,
  requestedBy: Actor,
  since: z.iso.datetime(),
  /** The agent goes on by itself from here; null: when somebody says so. */
  until: z.iso.datetime().nullable(),
});
export type Handoff = z.infer<typeof Handoff>;

/** tenants/<id>/handoffs/<sessionId>.resumed.json: ends exactly the handoff it names, and no later one. */
export const HandoffEnd = z.strictObject({ version: z.literal(1), handoffId: HandoffId, by: Actor, at: z.iso.datetime() });
export type HandoffEnd = z.infer<typeof HandoffEnd>;

export const HandoffView = z
  .object({
    sessionId: ContactId,
    /** The agent answers again after `resumed` (somebody said so) and `expired` (its time was over). */
    state: z.enum(['paused', 'resumed', 'expired']),
    reason: z.string(),
    requestedBy: Actor,
    since: z.iso.datetime(),
    until: z.iso.datetime().nullable(),
    resumedBy: Actor.nullable(),
    resumedAt: z.iso.datetime().nullable(),
  })
  .meta({ id: 'Handoff' });
export type HandoffView = z.infer<typeof HandoffView>;
