import type { Dialect } from './dialect.ts';

/**
 * What a provider takes in a conversation, and how fast. A channel may have two sets: Instagram is reached through the
 * page of Messenger, and has separate limits.
 */
export interface SendingRules {
  readonly name: string;
  readonly dialect: Dialect;
  /**
   * Messages may arrive in another order than they were sent: the parts of a long one are numbered, within the limit of
   * the dialect.
   */
  readonly isNumbered?: boolean;
  readonly pace: (to: string) => Pace;
  /** For so long after the contact last wrote free text may be sent; null: always. */
  readonly replyWindowMs: number | null;
}

/** How fast a provider lets one binding send. */
export interface Pace {
  /** Between two messages to the same conversation, once its burst is used up. */
  readonly conversationIntervalMs: number;
  readonly conversationBurst: number;
  /** From one number, page, bot or app. */
  readonly bindingPerSecond: number;
  /** A limit that the provider reports is this conversation's own: the others of the binding go on. */
  readonly isOwnLimit?: boolean;
}

/** Meta's rule, for all its channels, also when they are reached through another provider. */
export const DAY_WINDOW_MS = 24 * 60 * 60_000;

/** A margin for the way to the provider: a message that would arrive a moment too late is not sent. */
const MARGIN_MS = 30_000;

export type ReplyWindow =
  | { readonly state: 'none' }
  | { readonly state: 'open'; readonly untilMs: number }
  | { readonly state: 'closed'; readonly sinceMs: number | undefined };

/** Whether free text may be sent, known before it is tried. A contact who never wrote has no window at all. */
export function replyWindow(
  { replyWindowMs }: Pick<SendingRules, 'replyWindowMs'>,
  { lastInboundMs, nowMs }: { readonly lastInboundMs: number | undefined; readonly nowMs: number },
): ReplyWindow {
  if (replyWindowMs === null) return { state: 'none' };
  if (lastInboundMs === undefined) return { state: 'closed', sinceMs: undefined };
  const untilMs = lastInboundMs + replyWindowMs - MARGIN_MS;
  return nowMs < untilMs ? { state: 'open', untilMs } : { state: 'closed', sinceMs: untilMs };
}
