import { backoffMs, type BackoffPlan } from '@concierge/contract';

/** Why something was not sent: fit for the owner and for a log. Never a credential in it. */
export interface SendProblem {
  /** The provider's own code where it has one: `131047`, `channel_not_found`. */
  readonly code: string;
  readonly message: string;
}

/**
 * The outcome of one part, as far as the provider's answer shows it:
 *
 * - `sent`: accepted by the provider; receipts move it on from there.
 * - `retry`: nothing was sent, later it may be. `afterMs` is the provider's own delay.
 * - `resend_plain`, `resend_without_reply`, `resend_to`: nothing was sent; at once again without formatting, without
 *   the reference, to the new address.
 * - `window_closed`: only a template may be sent until the contact writes again.
 * - `refused`: this message never; another may.
 * - `recipient_failed`: this contact or conversation cannot be reached any more.
 * - `binding_failed`: nothing can be sent with these credentials until an operator or owner has corrected them.
 * - `unknown`: it may have been sent or not, so it is never sent again.
 */
export type SendOutcome =
  | { readonly kind: 'sent'; readonly providerMessageId: string | undefined }
  | ({ readonly kind: 'retry'; readonly backoff: Backoff; readonly afterMs?: number } & SendProblem)
  | ({ readonly kind: 'resend_to'; readonly to: string } & SendProblem)
  | ({ readonly kind: FinalKind } & SendProblem);

export type FinalKind =
  | 'resend_plain'
  | 'resend_without_reply'
  | 'window_closed'
  | 'refused'
  | 'recipient_failed'
  | 'binding_failed'
  | 'unknown';

/** `pair`: too many messages to one contact; only that conversation waits. `few`: a fault that seldom passes. */
export type Backoff = 'ordinary' | 'pair' | 'few';

/** Shown to owners, and kept in files that have a limit. */
const MESSAGE_MAX_CHARACTERS = 400;

export function failed<Kind extends FinalKind>(kind: Kind, { code, message }: SendProblem): { readonly kind: Kind } & SendProblem {
  return { kind, ...problem(code, message) };
}

export function retry(
  { code, message }: SendProblem,
  { backoff = 'ordinary', afterMs }: { backoff?: Backoff; afterMs?: number | undefined } = {},
): SendOutcome {
  return { kind: 'retry', backoff, ...(afterMs !== undefined && { afterMs }), ...problem(code, message) };
}

function problem(code: string, message: string): SendProblem {
  return { code: code.slice(0, 100), message: message.slice(0, MESSAGE_MAX_CHARACTERS) };
}

const maxMs = 15 * 60_000;

const plans: Readonly<Record<Backoff, BackoffPlan & { readonly maxAttempts: number }>> = {
  ordinary: { firstMs: 1000, maxMs, least: 0.5, jitter: 0.5, maxAttempts: 10 },
  // 4^n seconds at least, as WhatsApp wishes it.
  pair: { firstMs: 4000, factor: 4, maxMs, jitter: 0.25, maxAttempts: 6 },
  few: { firstMs: 2000, maxMs, least: 0.5, jitter: 0.5, maxAttempts: 3 },
};

export interface RetryPosition {
  /** How often it has been tried: 1 after the first. */
  readonly attempts: number;
  /** From 0 to 1, so that what failed together does not come back together. */
  readonly random: number;
}

/**
 * How long to wait before the next try; undefined when that was the last. The provider's own hint counts in full, hours
 * too: a sender that waits that long parks the message, and holds no worker.
 */
export function retryDelayMs(
  { backoff, afterMs }: Pick<Extract<SendOutcome, { kind: 'retry' }>, 'backoff' | 'afterMs'>,
  { attempts, random }: RetryPosition,
): number | undefined {
  const plan = plans[backoff];
  if (attempts >= plan.maxAttempts) return undefined;
  return Math.round(afterMs === undefined ? backoffMs(attempts, plan, random) : afterMs + random * plan.firstMs);
}
