import { ConciergeError } from './concierge-error.ts';

const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 15_000;
/** Longer waits than this are not asked for: limits are counted over an hour at most. */
const LONGEST_RETRY_AFTER_MS = 3_600_000;
const MAX_RETRIES = 20;

export interface Retry {
  /** Failed attempts in a row, this one included. */
  readonly attempt: number;
  readonly delayMs: number;
  readonly error: ConciergeError;
}

export interface RetryOptions {
  /** Ends everything; the turn itself goes on at the service. */
  readonly signal?: AbortSignal | undefined;
  /** Failed attempts in a row, without a single new event, before the last error is thrown; default 20. */
  readonly maxRetries?: number | undefined;
  /** Called before each wait. */
  readonly onRetry?: ((retry: Retry) => void) | undefined;
  /** Resolves after the time, or sooner when there is reason to hope (the network is back), or when aborted. */
  readonly wait?: ((ms: number, signal: AbortSignal) => Promise<void>) | undefined;
}

/**
 * Yields what one reading after another brings: the next one begins when one ends, or fails in a way that is worth
 * another. Ends only when its caller leaves. @throws the failure that is not worth another, or the last one after too
 * many in a row that have brought nothing; the signal's reason when aborted
 */
export async function* repeatReading<Item>(
  read: () => AsyncIterable<Item>,
  isWorthRetrying: (failure: ConciergeError) => boolean,
  options: RetryOptions,
): AsyncGenerator<Item, never> {
  let failures = 0;
  for (;;) {
    let failure = new ConciergeError('The stream ended too early.', { status: 0, code: 'unreachable' });
    try {
      for await (const item of read()) {
        failures = 0;
        yield item;
      }
    } catch (error) {
      options.signal?.throwIfAborted();
      failure = ConciergeError.from(error);
      if (!isWorthRetrying(failure)) throw failure;
    }
    failures += 1;
    await waitToRetry(failures, failure, options);
  }
}

/**
 * Resolves when it is time to try again after so many failed attempts in a row. @throws the error after too many; the
 * signal's reason when aborted
 */
export async function waitToRetry(attempt: number, error: ConciergeError, options: RetryOptions): Promise<void> {
  const { signal = new AbortController().signal, maxRetries = MAX_RETRIES, onRetry, wait = waitFor } = options;
  signal.throwIfAborted();
  if (attempt > maxRetries) throw error;
  const delayMs = Math.max(retryDelayMs(attempt), Math.min(error.retryAfterMs ?? 0, LONGEST_RETRY_AFTER_MS));
  onRetry?.({ attempt, delayMs, error });
  signal.throwIfAborted();
  await wait(delayMs, signal);
  signal.throwIfAborted();
}

/** Milliseconds before the attempt with this number (from 1), doubling, with up to a fifth of jitter. */
export function retryDelayMs(attempt: number, random: () => number = Math.random): number {
  const delayMs = Math.min(FIRST_DELAY_MS * 2 ** Math.min(attempt - 1, 10), LONGEST_DELAY_MS);
  return Math.round(delayMs * (1 + random() * 0.2));
}

async function waitFor(ms: number, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end);
    function end(): void {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    }
  });
}
