import { z } from 'zod';
import { AppChannel } from './channel-binding.ts';
import { ContactId, MessageText } from './chat.ts';
import { limits } from './limits.ts';
import { AgentName } from './tenant.ts';

export const OutboundId = z.string().regex(/^m_[0-9a-f]{32}$/u, 'is not the id of a message');

/**
 * tenants/<id>/outbox/<id>.json: what an agent has said beside its reply, to be sent on a channel. Written before its tool answers, and never
 * changed: what becomes of it is told beside it. The id follows from turn and call, so the same call made again is the same message.
 */
export const OutboundMessage = z.strictObject({
  version: z.literal(1),
  id: OutboundId,
  /** `reply`: an extra part in the conversation of its turn. */
  kind: z.enum(['message', 'reply']),
  channel: AppChannel,
  to: z.string().min(1).max(limits.senderMaxCharacters),
  /** The conversation it belongs to, whether that has begun or not: its handoff holds the message back. */
  sessionId: ContactId,
  text: MessageText,
  agent: AgentName,
  turnId: z.string(),
  callId: z.string(),
  acceptedAt: z.iso.datetime(),
  /** Not to be sent any more after this: what was timely yesterday is not today. */
  expiresAt: z.iso.datetime(),
});
export type OutboundMessage = z.infer<typeof OutboundMessage>;
