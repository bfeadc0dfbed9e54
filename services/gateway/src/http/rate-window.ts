import { AppError } from '@concierge/contract';
import type { RateLimits, RateLimitState } from '@concierge/turn';

const windows = {
  hour: { seconds: 3600, requests: 'requests are allowed in an hour' },
  day: { seconds: 24 * 3600, requests: 'bytes are taken in a day' },
  minute: { seconds: 60, requests: 'of these requests are allowed in a minute' },
} as const;

export interface RateWindow {
  /** No tenant id has a colon: with one in it, this is never a tenant's window of requests. */
  readonly name: string;
  readonly limit: number;
  readonly per: keyof typeof windows;
  /** Its bytes, where the window counts those. */
  readonly weight?: number;
  /** Called before a request beyond the limit is refused, too. */
  report?(state: RateLimitState): void;
}

/** Takes one request from a window. @throws AppError `rate_limited`, `overloaded` */
export async function takeRequest(rateLimits: RateLimits, window: RateWindow): Promise<void> {
  const { name, limit, per, weight } = window;
  const { seconds, requests } = windows[per];
  const state = await rateLimits.take(name, { limit, windowSeconds: seconds, weight }).catch((error: unknown) => {
    // A limit that cannot be counted is enforced as an error, not dropped.
    throw new AppError('overloaded', 'The request cannot be counted right now.', { cause: error, retryAfterSeconds: 1 });
  });
  window.report?.(state);
  if (state.allowed) return;
  throw new AppError('rate_limited', `At most ${String(limit)} ${requests}.`, { retryAfterSeconds: state.resetSeconds });
}
