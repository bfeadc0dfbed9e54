import type { MessagingChannel, ChannelCheck, ChannelSettings, ReceiptState } from '@concierge/contract';
import type { MediaSources } from './outbound/fetch-file.ts';
import type { ChannelSender, SenderOptions } from './outbound/channel-sender.ts';
import type { ProviderUrls } from './outbound/provider-environment.ts';
import type { SendingRules } from './outbound/sending-rules.ts';

/**
 * One channel: everything that differs between channels is behind this interface. What can be declared stands in
 * `channelDefinitions` of the contract; the rest is here, in one folder for each channel, and in one line of
 * `channelAdapters`.
 */
export interface ChannelAdapter<Settings = ChannelSettings[MessagingChannel]> {
  /**
   * GET: the challenge to be echoed as it is; undefined when the provider asks with another token. Absent: it never
   * asks.
   */
  handshake?(query: WebhookQuery, settings: Settings | undefined): string | undefined;
  /**
   * POST: whether the provider alone can have written these bytes for this binding. Before anything else is read.
   * `settings` are undefined when there is no such tenant or binding: the same work is done then, and the answer is no.
   */
  verify(request: WebhookRequest, settings: Settings | undefined): boolean;
  /**
   * Only for a body that `verify` has passed, with the address that was called. Never throws: an unknown item becomes
   * `ignored`.
   */
  parse(body: Uint8Array, settings: Settings, url?: string): Delivery;
  /** The binding's own id at the provider: messages of two of them are not the same, whatever their ids. */
  selfId(settings: Settings): string;
  /** Sends with these credentials. It holds no connection, and nothing to close. */
  openSender(settings: Settings, options: SenderOptions): ChannelSender;
  /** Manages the webhook address at the provider. Absent: it is set by hand, and cannot be queried. */
  openWebhooks?(settings: Settings, options: WebhooksOptions): ChannelWebhooks;
  /** One set of rules, or one for each kind of conversation. */
  readonly allRules: readonly SendingRules[];
  /** The rules for a conversation, as far as it is known. */
  rulesFor(conversation: ConversationHint): SendingRules;
  /** The rules depend on which of the binding's accounts was written to. */
  hasRulesPerAccount?(identifiers: Readonly<Record<string, string>>): boolean;
  readonly mediaSources: MediaSources;
}

export interface ConversationHint {
  readonly to?: string;
  /** The binding's identifiers, as they are stored. */
  readonly identifiers?: Readonly<Record<string, string>>;
  /** Which of the binding's accounts was written to. */
  readonly account?: string | undefined;
}

/**
 * Addresses that lead to a binding: the first is the one that providers are given. Without PUBLIC_URL they are paths.
 */
export type WebhookAddresses = readonly [string, ...string[]];

export interface WebhooksOptions {
  readonly urls: ProviderUrls;
  readonly hasPublicUrl: boolean;
  /** The time for each request. */
  readonly timeoutMs: number;
}

/** Calls to the provider about its webhook. Never throws for failures of the network or the provider. */
export interface ChannelWebhooks {
  /** undefined: it is unknown where the provider would reach us, so it is done by hand. */
  register(addresses: WebhookAddresses): Promise<ChannelCheck | undefined>;
  /** Done as far as the provider can be reached: a delivery to an address without a binding is refused. */
  remove(addresses: WebhookAddresses): Promise<void>;
  /** undefined: it cannot be asked, and nothing is known to be wrong. */
  check(addresses: WebhookAddresses): Promise<ChannelCheck | undefined>;
}

/** As a query parser gives it; anything but a string is nothing that a provider sends. */
export type WebhookQuery = Readonly<Record<string, unknown>>;

export interface WebhookRequest {
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** As they came over the wire: a signature is over these, not over what they mean. */
  readonly body: Uint8Array;
  /**
   * As the provider called it, below PUBLIC_URL and with its query: some signatures are over this, too. Absent without
   * PUBLIC_URL.
   */
  readonly url?: string | undefined;
  readonly nowMs: number;
}

/**
 * items → each is handled, then 200. challenge → a handshake by POST: 200 with the challenge as text/plain.
 * malformed → signed, but not the format of the provider: 400.
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

/** A message to the binding. */
export interface InboundMessage {
  readonly kind: 'message';
  /** The same in each delivery of the same message, and no other message of this binding has it. */
  readonly providerMessageId: string;
  /** The delivery's own id where the provider has one; two deliveries of one message may differ in it. */
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
  /** The advertisement that the sender came from. */
  readonly referral?: { readonly sourceType: string | null; readonly sourceId: string | null };
  /** Sent together with others of the same id: the provider makes several messages of one. */
  readonly albumId?: string;
  /** The message it answers, as the provider names it. */
  readonly replyTo: string | null;
  /** By the provider's clock, as it was sent: may lie beyond what a Date can hold. */
  readonly sentAtMs: number | null;
}

export interface InboundSender {
  readonly id: string;
  /** Other ids of the same sender that this delivery contains. */
  readonly aliases: readonly string[];
  readonly displayName: string | null;
  /** The sender is from another organisation, in a conversation shared with it. */
  readonly isExternal: boolean;
}

export interface InboundConversation {
  /** Where the answer goes. */
  readonly id: string;
  /** The answer goes into this thread of it. */
  readonly threadId: string | null;
  /** Others read along: an answer to one member goes to all of them. */
  readonly isGroup: boolean;
  /**
   * Which of the binding's accounts was written to, where it has several: a page, or the Instagram account beside it.
   */
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

/**
 * A file that can be fetched after the message is accepted. `mediaSources` decides from where, also when `url` is null
 * and the provider returns it later.
 */
export interface MediaReference {
  readonly kind: MediaKind;
  /** Its id at the provider, which gives an address for it. */
  readonly id: string | null;
  readonly url: string | null;
  readonly mediaType: string | null;
  /** As the sender wrote it: never a path. */
  readonly fileName: string | null;
  readonly bytes: number | null;
  /** Base64, where the provider sends it. */
  readonly sha256: string | null;
}

/** The state of messages of ours. Receipts come out of order: a state only ever moves forward. */
export interface InboundReceipt {
  readonly kind: 'receipt';
  /** null: all messages to this recipient up to `upToMs`. */
  readonly messageId: string | null;
  readonly upToMs: number | null;
  readonly recipient: string | null;
  readonly state: ReceiptState;
  readonly atMs: number | null;
  /** Only for `failed`. */
  readonly errorCodes: readonly string[];
  /** Our reference, sent with the message: it identifies the message even if the provider's answer never arrived. */
  readonly reference?: string;
}

/** A sender or a conversation has another id from now on. */
export interface InboundAlias {
  readonly kind: 'alias';
  readonly of: 'sender' | 'conversation';
  readonly from: string;
  readonly to: string;
}

/** The sender took a message back. */
export interface InboundRetraction {
  readonly kind: 'retraction';
  /** The id of the message that is taken back. */
  readonly providerMessageId: string;
  readonly messageRef: string;
}

/** A pressed button waits for its acknowledgement, whether or not there is a message beside this. */
export interface InboundCallback {
  readonly kind: 'callback';
  readonly callbackId: string;
}

/** The recipient refuses all messages from now on. */
export interface InboundUnreachable {
  readonly kind: 'unreachable';
  readonly conversationId: string;
}

/** The recipient takes messages again. */
export interface InboundReachable {
  readonly kind: 'reachable';
  readonly conversationId: string;
}

/** The provider no longer lets the binding do anything: it must be connected anew. */
export interface InboundRevocation {
  readonly kind: 'revocation';
  readonly reason: string;
}

/** Nothing to be done, for a reason that can be counted. */
export interface InboundIgnored {
  readonly kind: 'ignored';
  readonly reason: IgnoredReason;
  /** The provider's own word for it; no text of a message. */
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
