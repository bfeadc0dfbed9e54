const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** As Standard Webhooks proposes, after the first try, which is made at once. */
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
/** So much later at most, so that what failed together is not tried together. */
const JITTER = 0.2;

/** How long to wait after so many tries; undefined when there is no further one. What the endpoint itself asks for is the least. */
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
