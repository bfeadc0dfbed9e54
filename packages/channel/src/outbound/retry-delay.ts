import { backoffMs, type BackoffPlan } from '@concierge/contract';
import type { Backoff, SendOutcome } from './send-outcome.ts';

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
