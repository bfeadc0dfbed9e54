import { HOUR_MS, MINUTE_MS, SECOND_MS } from '@concierge/contract';

/** The waits that Standard Webhooks proposes, after the first try, which is made at once. */
const delaysMs = [
  5 * SECOND_MS,
  5 * MINUTE_MS,
  30 * MINUTE_MS,
  2 * HOUR_MS,
  5 * HOUR_MS,
  10 * HOUR_MS,
  14 * HOUR_MS,
  20 * HOUR_MS,
  24 * HOUR_MS,
] as const;
const LONGEST_MS = 24 * HOUR_MS;
/** The largest jitter, so that events that failed together are not tried together. */
const JITTER = 0.2;

/**
 * How long to wait after this many tries; undefined when there is no further one. The wait that the endpoint asks for
 * is the minimum.
 */
export function retryDelayMs(
  tries: number,
  { random, retryAfterMs }: { readonly random: number; readonly retryAfterMs: number },
): number | undefined {
  const delayMs = delaysMs[tries - 1];
  if (delayMs === undefined) return undefined;
  return Math.round(Math.max(delayMs * (1 + JITTER * random), Math.min(retryAfterMs, LONGEST_MS)));
}

/** The header Retry-After, seconds or a date; 0 for none, and for what is neither. */
export function retryAfterMs(header: string | null, nowMs: number): number {
  if (header === null) return 0;
  if (/^\s*\d{1,9}\s*$/u.test(header)) return Number(header) * SECOND_MS;
  const atMs = Date.parse(header);
  return Number.isNaN(atMs) ? 0 : Math.max(0, atMs - nowMs);
}
