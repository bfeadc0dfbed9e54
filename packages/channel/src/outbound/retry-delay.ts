import type { Backoff, SendOutcome } from './send-outcome.ts';

const plans: Readonly<Record<Backoff, { readonly firstMs: number; readonly factor: number; readonly maxAttempts: number }>> = {
  ordinary: { firstMs: 1000, factor: 2, maxAttempts: 10 },
  // 4^n seconds, as WhatsApp wishes it.
  pair: { firstMs: 4000, factor: 4, maxAttempts: 6 },
  few: { firstMs: 2000, factor: 2, maxAttempts: 3 },
};

const DELAY_MAX_MS = 15 * 60_000;

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
  const { firstMs, factor, maxAttempts } = plans[backoff];
  if (attempts >= maxAttempts) return undefined;
  if (afterMs !== undefined) return Math.round(afterMs + random * firstMs);
  const full = Math.min(firstMs * factor ** (attempts - 1), DELAY_MAX_MS);
  // A pair limit asks for that long at least; others are content with half.
  return Math.round(backoff === 'pair' ? full * (1 + random / 4) : full * (0.5 + random / 2));
}
