import { hash } from 'node:crypto';
import type { InboundMessage } from '@concierge/channel';
import { ChannelMessage, limits, codePoints, type TurnInput } from '@concierge/contract';
import type { BoundChannel } from './bound-channel.ts';
import type { BusyRule } from './busy-rule.ts';

/** All that comes beside a text. Orders and cards are the longest, and far from it. */
const BESIDE_TEXT_MAX_CHARACTERS = 64 * 1024;

/**
 * undefined when it has ids or numbers that no file of ours may hold, or more than any app lets people send: whoever has the secret of a binding can sign
 * what they like, and what is accepted is held in memory by all who deal with it.
 */
export function toChannelMessage(message: InboundMessage): ChannelMessage | undefined {
  const { sender } = message;
  if (![sender.id, ...sender.aliases].every(isSenderId)) return undefined;
  const read = readChannelMessage(message);
  return JSON.stringify(read ?? null).length > BESIDE_TEXT_MAX_CHARACTERS ? undefined : read;
}

export function isSenderId(id: string): boolean {
  return id.length <= limits.senderMaxCharacters;
}

function readChannelMessage(message: InboundMessage): ChannelMessage | undefined {
  const { conversation, messageRef, media, location, cards, choice, order, albumId, replyTo } = message;
  const { id: to, threadId: thread, account } = conversation;
  return ChannelMessage.safeParse({
    address: { to, thread, account },
    isGroup: conversation.isGroup,
    messageRef,
    media,
    location,
    cards,
    choice,
    order,
    albumId,
    replyTo,
  }).data;
}

export interface KnownMessage {
  readonly message: InboundMessage;
  readonly chatApp: ChannelMessage;
  /** Whose conversation it is. */
  readonly sender: string;
  readonly rule: BusyRule;
}

/** What a person said, in the words of the turn path. */
export function turnOfMessage(from: BoundChannel, { message, chatApp, sender, rule }: KnownMessage): TurnInput {
  const dedupeId = dedupeIdOf(from, message.providerMessageId);
  return {
    origin: 'webhook',
    agent: 'cs',
    authority: 'cs',
    channel: from.channel,
    sender,
    contactId: null,
    text: cut(message.text ?? ''),
    attachments: [],
    ...rule,
    dedupeId,
    // Of the id alone: what else a delivery says may differ in the next one, and it is the same message.
    requestHash: hash('sha256', dedupeId),
    keyId: null,
    chatApp,
  };
}

/** The same in each delivery of a message, and of no other: the turn's id follows from it. */
export function dedupeIdOf({ channel, account }: BoundChannel, providerMessageId: string): string {
  return `channel:${channel}:${account}:${providerMessageId}`;
}

/** No app lets people write so much; what another kind of client sends is not refused, for it would come again. The model is told that there was more. */
function cut(text: string): string {
  if (codePoints(text) <= limits.messageMaxCharacters) return text;
  const characters = Array.from(text);
  const kept = limits.messageMaxCharacters - leftOut(characters.length).length;
  return `${characters.slice(0, kept).join('')}${leftOut(characters.length - kept)}`;
}

function leftOut(count: number): string {
  return `\n\n[The message goes on: ${String(count)} more characters were left out.]`;
}
