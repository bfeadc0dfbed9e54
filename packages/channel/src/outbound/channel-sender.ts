import type { Part } from './render-parts.ts';
import type { SendOutcome } from './send-outcome.ts';
import type { FetchedFile, FileRequest } from './fetch-file.ts';
import type { ProviderUrls } from './provider-environment.ts';
import { setTimeout } from 'node:timers/promises';

export interface SenderOptions {
  readonly urls: ProviderUrls;
  /** How long an answer to a send is waited for; after that it is unknown whether it was sent. */
  readonly timeoutMs?: number;
  /** The address for the provider's callbacks about this binding. Absent without PUBLIC_URL. */
  readonly webhookUrl?: string | undefined;
}

/** Where a conversation is, in the provider's own ids. */
export interface Destination {
  /** Phone number or business-scoped id, page-scoped id, chat id, Slack conversation. */
  readonly to: string;
  /** A topic of a Telegram group (`message_thread_id`), a thread of Slack (`thread_ts`). */
  readonly thread?: string;
}

export interface OutgoingMessage extends Destination {
  readonly part: Pick<Part, 'text' | 'plain'>;
  /** `plain` after the provider refused the formatting. */
  readonly form: 'formatted' | 'plain';
  /** The message that is answered, as the `messageRef` of its `InboundMessage` names it. */
  readonly replyTo?: string;
  /** Our reference; some providers return it in receipts and echoes. */
  readonly reference?: string;
}

export interface TypingRequest extends Destination {
  /** The contact's message: WhatsApp shows typing only as an answer to one. */
  readonly inboundMessageId?: string;
}

/** An approved message of the business: all that may be sent while the window is closed. */
export interface OutgoingTemplate {
  readonly to: string;
  readonly name: string;
  /** `en_US` */
  readonly language: string;
  /** For {{1}}, {{2}} … of its body. */
  readonly bodyParameters: readonly string[];
}

export type CredentialCheck =
  /**
   * `identifiers`: facts of the account from the provider that inbound messages are read by, under the names of the
   * binding's settings.
   */
  | { readonly state: 'valid'; readonly account: string; readonly identifiers?: Readonly<Record<string, string>> }
  /** `mismatch`: the credentials work, for another account than the binding names. */
  | { readonly state: 'refused' | 'mismatch' | 'unreachable'; readonly message: string };

/** Sends to one provider, with the credentials of one binding. */
export interface ChannelSender {
  /**
   * One part, tried once. Never throws for failures of the network or the provider;
   * @throws the signal's reason when it was aborted before anything left.
   */
  readonly send: (message: OutgoingMessage, signal: AbortSignal) => Promise<SendOutcome>;
  /** Whether the contact sees it. Never throws: an answer does not fail because typing was not shown. */
  readonly showTyping: (request: TypingRequest, signal: AbortSignal) => Promise<boolean>;
  /** After so long the provider takes the indicator away. */
  readonly typingRepeatMs: number;
  readonly checkCredentials: (signal: AbortSignal) => Promise<CredentialCheck>;
  /** A file that a contact sent. @throws FileUnavailableError */
  readonly fetchFile: (file: FileRequest, signal: AbortSignal) => Promise<FetchedFile>;
  /** As `send`. Absent: the provider has none. */
  readonly sendTemplate?: (template: OutgoingTemplate, signal: AbortSignal) => Promise<SendOutcome>;
  /**
   * A pressed button shows that it waits until this is called. False when that failed; nothing else fails for it.
   * Absent: none waits.
   */
  readonly acknowledge?: (callbackId: string, signal: AbortSignal) => Promise<boolean>;
}

/** Providers take the indicator away by themselves; no turn lasts longer than this. */
const TYPING_MAX_MS = 30 * 60_000;

/** Shows the typing indicator until the signal aborts. Never throws, and ends by itself where it cannot be shown. */
export async function keepTyping(
  sender: Pick<ChannelSender, 'showTyping' | 'typingRepeatMs'>,
  request: TypingRequest,
  signal: AbortSignal,
): Promise<void> {
  const rounds = Math.ceil(TYPING_MAX_MS / sender.typingRepeatMs);
  for (let round = 1; round <= rounds && !signal.aborted; round += 1) {
    if (!(await sender.showTyping(request, signal))) return;
    await setTimeout(sender.typingRepeatMs, undefined, { signal, ref: false }).catch(() => undefined);
  }
}
