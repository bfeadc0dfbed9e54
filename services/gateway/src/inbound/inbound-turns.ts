import { hash } from 'node:crypto';
import type { InboundMessage, InboundRetraction } from '@concierge/channel';
import {
  ChannelMessage,
  limits,
  fitsMessage,
  type TurnInput,
  toAppName,
  type MessagingChannel,
  type BusyPolicy,
  type TenantSettings,
  AppError,
} from '@concierge/contract';
import type { Turns } from '@concierge/turn';
import type { TenantScope } from '@concierge/tenant';

/** A tenant's channel binding whose deliveries are verified. */
export interface BoundChannel {
  readonly scope: TenantScope;
  readonly channel: MessagingChannel;
  /** The binding's own id at the provider: messages of two accounts are not the same, whatever their ids. */
  readonly account: string;
  /** The span of who delivers (W3C Trace Context). */
  readonly traceparent?: string | undefined;
}

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
export function toTurnInput(from: BoundChannel, { message, channelMessage, sender, rule }: KnownMessage): TurnInput {
  const dedupeId = buildDedupeId(from, message.providerMessageId);
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
    ...(from.traceparent !== undefined && { traceparent: from.traceparent }),
  };
}

/** An id that each delivery of a message has, and no other message: the turn's id follows from it. */
export function buildDedupeId({ channel, account }: BoundChannel, providerMessageId: string): string {
  return `channel:${channel}:${account}:${providerMessageId}`;
}

/**
 * No channel lets people write so much. A longer message is not refused, for it would be delivered again; a note tells
 * the model that there was more.
 */
function cut(text: string): string {
  if (fitsMessage(text)) return text;
  const characters = Array.from(text);
  const kept = limits.messageMaxCharacters - leftOut(characters.length).length;
  return `${characters.slice(0, kept).join('')}${leftOut(characters.length - kept)}`;
}

function leftOut(count: number): string {
  return `\n\n[The message goes on: ${String(count)} more characters were left out.]`;
}

/**
 * Pieces of one question follow each other within this time: words after words, a question after its picture, the
 * pictures of an album.
 */
const DEBOUNCE_MS = 1500;

type BusyRule = Pick<TurnInput, 'busy' | 'debounceMs'>;

/**
 * The rule of tenant.json for the channel, under either of its names. The pictures of an album are collected whatever
 * the rule: the provider delivers one message as several. Queued, each would have an answer, and with `interrupt`
 * or `reject` only one of them would be seen.
 */
export function chooseBusyRule(
  { channels = {} }: Pick<TenantSettings, 'channels'>,
  channel: MessagingChannel,
  { albumId }: Pick<InboundMessage, 'albumId'>,
): BusyRule {
  const {
    busy = 'collect',
    debounceMs = DEBOUNCE_MS,
  }: { readonly busy?: BusyPolicy | 'collect' | undefined; readonly debounceMs?: number | undefined } =
    channels[channel] ?? channels[toAppName(channel)] ?? {};
  if (albumId !== undefined) return { busy: 'collect', debounceMs: Math.max(DEBOUNCE_MS, debounceMs) };
  return busy === 'collect' ? { busy, debounceMs } : { busy };
}

/** The outcome of a retraction. */
type Outcome = 'accepted' | 'unknown' | 'overflow';

/**
 * Takes back a sender's message. A waiting message is not answered; an answered one is removed from the conversation by
 * a separate turn, behind the one that runs there: only one writes to a conversation at a time. On disk when it
 * returns. @throws what Turns.accept throws, when the provider is to deliver it again
 */
export async function takeBack(
  turns: Pick<Turns, 'accept' | 'cancel' | 'findAccepted'>,
  from: BoundChannel,
  { providerMessageId }: InboundRetraction,
): Promise<Outcome> {
  const { scope, channel } = from;
  const taken = buildDedupeId(from, providerMessageId);
  const turn = await turns.findAccepted(scope, taken);
  if (turn === undefined) return 'unknown';
  // One that runs is answered: others may be answered with it, and the answer may be out.
  if (turn.status === 'waiting') await turns.cancel(scope, turn.id);
  const dedupeId = `${taken}:retraction`;
  try {
    await turns.accept(scope, {
      origin: 'retraction',
      agent: turn.agent,
      // Useless: nothing runs in it.
      authority: 'cs',
      channel,
      sender: null,
      contactId: turn.contact_id,
      text: '',
      attachments: [],
      busy: 'queue',
      dedupeId,
      requestHash: hash('sha256', dedupeId),
      keyId: null,
      retracts: turn.id,
    });
    return 'accepted';
  } catch (error) {
    if (error instanceof AppError && error.code === 'too_many_waiting') return 'overflow';
    throw error;
  }
}
