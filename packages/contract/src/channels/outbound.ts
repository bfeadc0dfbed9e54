import { z } from 'zod';
import { Actor } from '../values/actor.ts';
import { MessagingChannel } from './channel.ts';
import { ContactId, MessageText } from '../turns/chat.ts';
import { limits } from '../limits.ts';
import { AgentName } from '../tenants/tenant.ts';

export const OutboundId = z.string().regex(/^m_[0-9a-f]{32}$/u, 'is not the id of a message');

/**
 * `answer`: the last text of a turn. `reply`: an extra part in the conversation of its turn. `message`: to another
 * contact, or in another conversation. `person`: written by a staff member in the agent's place. `notice`: that staff
 * is asked for. The last two go out while a staff member has the conversation, the others never.
 */
export const OutboundKind = z.enum(['answer', 'reply', 'message', 'person', 'notice']);
export type OutboundKind = z.infer<typeof OutboundKind>;

/** A message that WhatsApp has approved: all that may be sent there while the reply window is closed. */
export const MessageTemplate = z.strictObject({
  name: z.string().regex(/^[a-z0-9_]{1,512}$/u, 'must be 1 to 512 lower-case letters, digits or _'),
  /** `en_US` */
  language: z.string().regex(/^[a-z]{2,3}(?:_[A-Z]{2})?$/u, 'must be a language such as en or en_US'),
  /** For {{1}}, {{2}} … of its body. */
  variables: z.array(z.string().min(1).max(1024)).max(20).optional(),
});
export type MessageTemplate = z.infer<typeof MessageTemplate>;

/**
 * tenants/<id>/outbox/<lane>/<id>.json: a message to send on a channel. Written before its tool answers, and never
 * changed: what becomes of it is written beside it. The id follows from recipient, turn and call, so the same call made
 * again is the same message.
 */
export const OutboundMessage = z.strictObject({
  version: z.literal(1),
  id: OutboundId,
  kind: OutboundKind,
  channel: MessagingChannel,
  to: z.string().min(1).max(limits.senderMaxCharacters),
  /** A topic of a Telegram group, a thread of Slack. */
  thread: z.string().min(1).max(limits.senderMaxCharacters).optional(),
  /** The message it answers, by the provider's id. */
  replyTo: z.string().min(1).max(512).optional(),
  /** The conversation it belongs to, whether that has begun or not: its handoff withholds the message. */
  sessionId: ContactId,
  text: MessageText,
  /** Is sent in place of the text, which then only describes its content. */
  template: MessageTemplate.optional(),
  agent: AgentName,
  /** The staff member, of kind `person`. */
  by: Actor.optional(),
  turnId: z.string(),
  callId: z.string(),
  /**
   * When the contact it goes to wrote last, as far as its turn knows: the conversation's file does not have that turn
   * yet.
   */
  inboundAt: z.iso.datetime().optional(),
  acceptedAt: z.iso.datetime(),
  /** Not to be sent any more after this: what was timely yesterday is not today. */
  expiresAt: z.iso.datetime(),
});
export type OutboundMessage = z.infer<typeof OutboundMessage>;
