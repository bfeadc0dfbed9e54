import { z } from 'zod';
import { Actor } from '../values/actor.ts';
import { CanonicalChannel } from './channel.ts';
import { ChannelAddress } from './channel-message.ts';
import { ContactId, MessageText } from '../turns/chat.ts';
import { limits } from '../limits.ts';
import { AgentName } from '../tenants/tenant.ts';

export const HandoffReason = z.string().trim().min(1).max(limits.handoffReasonMaxCharacters);
const HandoffId = z.string().regex(/^h_[0-9a-f]{32}$/u);

/** A wish that staff answers in a conversation: why, who asks, and for how long at most. */
export interface HandoffWish {
  readonly reason: string;
  readonly by: Actor;
  /** The tenant's default where it is undefined. */
  readonly hours?: number | undefined;
}

/** tenants/<id>/handoffs/<sessionId>.json: the last request for staff to take the conversation over. */
export const Handoff = z.strictObject({
  version: z.literal(1),
  id: HandoffId,
  sessionId: ContactId,
  reason: HandoffReason,
  requestedBy: Actor,
  since: z.iso.datetime(),
  /** The agent goes on by itself from here; null: on request. */
  until: z.iso.datetime().nullable(),
});
export type Handoff = z.infer<typeof Handoff>;

/** tenants/<id>/handoffs/<sessionId>.resumed.json: ends exactly the handoff it names, and no later one. */
export const HandoffEnd = z.strictObject({ version: z.literal(1), handoffId: HandoffId, by: Actor, at: z.iso.datetime() });
export type HandoffEnd = z.infer<typeof HandoffEnd>;

/**
 * tenants/<id>/handoffs/calls/<handoffId>.json: exists before the handoff does, until all its notifications are sent.
 * Contains what they state, so that any process that finds it can send them.
 */
export const HandoffCall = z.strictObject({
  version: z.literal(1),
  handoffId: HandoffId,
  sessionId: ContactId,
  at: z.iso.datetime(),
  agent: AgentName,
  channel: CanonicalChannel,
  sender: z.string().nullable(),
  /** Where the contact is notified, in a conversation on a channel. */
  channelAddress: ChannelAddress.nullable(),
  /** The contact's last message. */
  lastWords: z.string().nullable(),
  /** False: a staff member has it already, and no notification is needed. */
  callsOwner: z.boolean(),
});
export type HandoffCall = z.infer<typeof HandoffCall>;

/** The same call as its file spells it: the address is stored as `chatApp`. */
export const StoredHandoffCall = HandoffCall.omit({ channelAddress: true }).extend({ chatApp: ChannelAddress.nullable() });
export type StoredHandoffCall = z.infer<typeof StoredHandoffCall>;

/** tenants/<id>/handoffs/alerts/<handoffId>.json: the owner was told that it is unanswered. */
export const HandoffAlert = z.strictObject({
  version: z.literal(1),
  handoffId: HandoffId,
  sessionId: ContactId,
  at: z.iso.datetime(),
});
export type HandoffAlert = z.infer<typeof HandoffAlert>;

export const HandoffView = z
  .object({
    id: HandoffId,
    sessionId: ContactId,
    /** The agent answers again after `resumed` (on request) and `expired` (its time was over). */
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

/**
 * GET /api/sessions/{id}/handoff. `isPaused` without a handoff: the file with the reason is damaged, and the agent
 * stays silent until the conversation is resumed.
 */
export const HandoffState = z.object({ isPaused: z.boolean(), handoff: HandoffView.nullable() }).meta({ id: 'HandoffState' });
export type HandoffState = z.infer<typeof HandoffState>;

/** GET /api/handoffs: a conversation that waits for staff, with what a list shows of it. */
export const WaitingHandoff = HandoffView.extend({
  agent: AgentName.nullable(),
  channel: CanonicalChannel.nullable(),
  title: z.string().nullable(),
  /** The last words of either side. */
  lastMessage: z.object({ from: z.enum(['contact', 'agent', 'person']), text: z.string(), at: z.iso.datetime() }).nullable(),
}).meta({ id: 'WaitingHandoff' });
export type WaitingHandoff = z.infer<typeof WaitingHandoff>;

/** POST /api/sessions/{id}/handoff */
export const HandoffBody = z
  .strictObject({
    reason: HandoffReason.default('Taken over by a person.'),
    /** The agent goes on by itself after so many hours; the tenant's default when left out. */
    hours: z.number().positive().max(limits.handoffMaxHours).optional(),
    /**
     * Notify the contacts that the tenant names, and the owner's agent; for a system that asks for staff. False
     * when the staff member who takes it over is the caller.
     */
    notify: z.boolean().default(true),
  })
  .meta({ id: 'HandoffBody' });
export type HandoffBody = z.infer<typeof HandoffBody>;

/** POST /api/sessions/{id}/messages */
export const PersonMessageBody = z.strictObject({ message: MessageText }).meta({ id: 'PersonMessageBody' });
export const PersonMessageReceipt = z.object({ turnId: z.string(), contact_id: ContactId }).meta({ id: 'PersonMessageReceipt' });
