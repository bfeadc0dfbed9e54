import { hash } from 'node:crypto';
import type { InboundMessage } from '@concierge/channel';
import { ChannelMessage, limits, codePoints, type TurnInput } from '@concierge/contract';
import type { BoundChannel } from './bound-channel.ts';
import type { BusyRule } from './busy-rule.ts';

/** The limit for everything beside the text. Orders and cards are the longest, and stay far below it. */
const BESIDE_TEXT_MAX_CHARACTERS = 64 * 1024;

/**
 * Returns undefined when it has ids or numbers that no file of ours may hold, or more than any channel lets people
 * send: a holder of a binding's secret can sign anything, and every process that handles an accepted message holds it
 * in memory.
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
  readonly channelMessage: ChannelMessage;
  /** The sender whose conversation it is. */
  readonly sender: string;
  readonly rule: BusyRule;
}

/** A channel message as input of a turn. */
export function turnOfMessage(from: BoundChannel, { message, channelMessage, sender, rule }: KnownMessage): TurnInput {
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
    // The hash covers the id alone: other fields may differ in the next delivery of the same message.
    requestHash: hash('sha256', dedupeId),
    keyId: null,
    channelMessage,
  };
}

/** An id that each delivery of a message has, and no other message: the turn's id follows from it. */
export function dedupeIdOf({ channel, account }: BoundChannel, providerMessageId: string): string {
  return `channel:${channel}:${account}:${providerMessageId}`;
}

/**
 * No channel lets people write so much. A longer message is not refused, for it would be delivered again; a note tells
 * the model that there was more.
 */
function cut(text: string): string {
  if (codePoints(text) <= limits.messageMaxCharacters) return text;
  const characters = Array.from(text);
  const kept = limits.messageMaxCharacters - leftOut(characters.length).length;
  return `${characters.slice(0, kept).join('')}${leftOut(characters.length - kept)}`;
}

function leftOut(count: number): string {
  return `\n\n[The message goes on: ${String(count)} more characters were left out.]`;
}
