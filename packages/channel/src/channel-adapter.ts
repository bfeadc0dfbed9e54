import type { AppChannel, ChannelSettings, ReceiptState } from '@concierge/contract';

/** One chat app: what comes from it, as the same few kinds of item whichever app it is. */
export interface ChannelAdapter<Channel extends AppChannel = AppChannel> {
  readonly channel: Channel;
  readonly inbound: InboundAdapter<ChannelSettings[Channel]>;
}

/**
 * What a webhook needs, in the order in which it needs it. `settings` are undefined when there is no such tenant or binding: the same work is done then,
 * and the answer is no.
 */
export interface InboundAdapter<Settings> {
  /** GET: the challenge to be echoed as it is, or undefined when the app does not ask, or asks with another token. */
  handshake(query: WebhookQuery, settings: Settings | undefined): string | undefined;
  /** POST: whether the app, and nobody else, has written these bytes for this binding. Before anything else is read. */
  verify(request: WebhookRequest, settings: Settings | undefined): boolean;
  /** Only of a body that `verify` has passed. Never throws: what is not understood becomes `ignored`. */
  parse(body: Uint8Array, settings: Settings): Delivery;
}

/** As a query parser gives it; anything but a string is nothing that an app sends. */
export type WebhookQuery = Readonly<Record<string, unknown>>;

export interface WebhookRequest {
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** As they came over the wire: a signature is over these, not over what they mean. */
  readonly body: Uint8Array;
  readonly nowMs: number;
}

/**
 * items → each is dealt with, then 200. challenge → a handshake by POST: 200 with the challenge as text/plain.
 * malformed → signed, but not the format of the app: 400.
 */
export type Delivery =
  | { readonly kind: 'items'; readonly items: readonly InboundItem[] }
  | { readonly kind: 'challenge'; readonly challenge: string }
  | { readonly kind: 'malformed' };

export type InboundItem =
  | InboundMessage
  | InboundReceipt
  | InboundAlias
  | InboundRetraction
  | InboundCallback
  | InboundUnreachable
  | InboundReachable
  | InboundRevocation
  | InboundIgnored;

/** Somebody says something to the binding. */
export interface InboundMessage {
  readonly kind: 'message';
  /** The same in each delivery of the same message, and no other message of this binding has it. */
  readonly providerMessageId: string;
  /** The delivery's own id where the app has one; two deliveries of one message may differ in it. */
  readonly eventId: string | null;
  /** What a reply, a read mark or a retraction names: the message within its conversation. */
  readonly messageRef: string;
  readonly sender: InboundSender;
  readonly conversation: InboundConversation;
  /** null: only media, a place or cards. Free of U+0000 and lone surrogates, which databases refuse. */
  readonly text: string | null;
  readonly media: readonly MediaReference[];
  readonly location?: InboundLocation;
  /** Names on the contact cards that were sent. */
  readonly cards?: readonly string[];
  /** A button or a menu entry was chosen; its label is the text. */
  readonly choice?: InboundChoice;
  readonly order?: InboundOrder;
  /** The advertisement that the person came from. */
  readonly referral?: { readonly sourceType: string | null; readonly sourceId: string | null };
  /** Sent together with others of the same id: the app makes several messages of one. */
  readonly albumId?: string;
  /** The message it answers, as the app names it. */
  readonly replyTo: string | null;
  /** By the app's clock, and as the app said it: may lie beyond what a Date can hold. */
  readonly sentAtMs: number | null;
}

export interface InboundSender {
  readonly id: string;
  /** Other ids of the same person that this delivery tells. */
  readonly aliases: readonly string[];
  readonly displayName: string | null;
  /** Of another organisation, in a conversation shared with it. */
  readonly isExternal: boolean;
}

export interface InboundConversation {
  /** Where the answer goes. */
  readonly id: string;
  /** The answer goes into this thread of it. */
  readonly threadId: string | null;
  /** Others read along: an answer to one person goes to all of them. */
  readonly isGroup: boolean;
  /** Which of the binding's accounts was written to, where it has several: a page, or the Instagram account beside it. */
  readonly account?: string;
}

export interface InboundLocation {
  readonly latitude: number;
  readonly longitude: number;
  readonly name: string | null;
  readonly address: string | null;
}

export interface InboundChoice {
  readonly kind: string;
  /** What the sender of the buttons called it. */
  readonly id: string;
  readonly title: string | null;
}

export interface InboundOrder {
  readonly catalogId: string | null;
  readonly items: readonly { readonly productId: string; readonly quantity: number | null }[];
}

export type MediaKind = 'image' | 'video' | 'audio' | 'voice' | 'document' | 'sticker' | 'animation' | 'share' | 'unknown';

/** A file that can be fetched after the message is accepted. Where from is `isMediaUrl`'s decision, also when `url` is null and the app tells it later. */
export interface MediaReference {
  readonly kind: MediaKind;
  /** Its id at the app, which gives an address for it. */
  readonly id: string | null;
  readonly url: string | null;
  readonly mediaType: string | null;
  /** As the sender wrote it: never a path. */
  readonly fileName: string | null;
  readonly bytes: number | null;
  /** Base64, where the app tells it. */
  readonly sha256: string | null;
}

/** What became of messages of ours. Comes out of order: a state only ever moves forward. */
export interface InboundReceipt {
  readonly kind: 'receipt';
  /** null: all messages to this recipient up to `upToMs`. */
  readonly messageId: string | null;
  readonly upToMs: number | null;
  readonly recipient: string | null;
  readonly state: ReceiptState;
  readonly atMs: number | null;
  /** Only of `failed`. */
  readonly errorCodes: readonly string[];
  /** Ours, as it went out with the message: it tells which one that was, also when the app's answer never arrived. */
  readonly mark?: string;
}

/** A person or a conversation has another id from now on. */
export interface InboundAlias {
  readonly kind: 'alias';
  readonly of: 'sender' | 'conversation';
  readonly from: string;
  readonly to: string;
}

/** The sender took a message back. */
export interface InboundRetraction {
  readonly kind: 'retraction';
  /** Of the message that is taken back. */
  readonly providerMessageId: string;
  readonly messageRef: string;
}

/** A pressed button waits for its acknowledgement, whether or not there is a message beside this. */
export interface InboundCallback {
  readonly kind: 'callback';
  readonly callbackId: string;
}

/** Whatever is sent there is refused from now on. */
export interface InboundUnreachable {
  readonly kind: 'unreachable';
  readonly conversationId: string;
}

/** What is sent there is taken again. */
export interface InboundReachable {
  readonly kind: 'reachable';
  readonly conversationId: string;
}

/** The app no longer lets the binding do anything: it is to be connected anew. */
export interface InboundRevocation {
  readonly kind: 'revocation';
  readonly reason: string;
}

/** Nothing to be done, for a reason that can be counted. */
export interface InboundIgnored {
  readonly kind: 'ignored';
  readonly reason: IgnoredReason;
  /** The app's own word for it; no text of a message. */
  readonly ref: string | null;
}

export const ignoredReasons = [
  'duplicate',
  'echo',
  'edit',
  'empty',
  'foreign',
  'from_bot',
  'no_id',
  'no_sender',
  'not_addressed',
  'other_event',
  'provider_error',
  'reaction',
  'service_message',
  'standby',
  'unreadable',
  'unsupported',
] as const;
export type IgnoredReason = (typeof ignoredReasons)[number];
