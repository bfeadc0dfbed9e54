import { setTimeout as sleep } from 'node:timers/promises';
import { backoffMs, type ModelFacts } from '@concierge/contract';
import { ModelError } from '../model.ts';
import type { CallFailure } from './call-failure.ts';

/** Time limits of a provider call. All of them end at once when the caller's signal aborts. */
export interface ModelLimits {
  /** From the request to the headers of its answer. */
  readonly headersMs: number;
  /**
   * The longest silence from the headers until the reply begins: reasoning is silent. Shorter than `headersMs`, it
   * counts before the headers, too. Also the longest silence once a tool call has begun, or may have after a sentence:
   * providers buffer its arguments, some the whole call.
   */
  readonly firstByteMs: number;
  /** The longest pause in the middle of text. */
  readonly idleMs: number;
  /** How long usage figures may take after the finish reason. */
  readonly afterFinishMs: number;
  /** One attempt from start to end. */
  readonly attemptMs: number;
  /** Attempts with one model before the next in line. */
  readonly attempts: number;
  /** Wait before the second attempt; doubles with each, up to `backoffMaxMs`, with half of it random. */
  readonly backoffMs: number;
  readonly backoffMaxMs: number;
  /** The longest `Retry-After` that is waited out; with a longer one the next model is asked at once. */
  readonly retryAfterMaxMs: number;
}

/** The limits with the values that the providers file sets for this model. */
export function applyTimeouts(limits: ModelLimits, { timeouts = {} }: Pick<ModelFacts, 'timeouts'>): ModelLimits {
  const { headersMs = limits.headersMs, firstTokenMs = limits.firstByteMs, silenceMs = limits.idleMs } = timeouts;
  return { ...limits, headersMs, firstByteMs: firstTokenMs, idleMs: silenceMs };
}

export const defaultModelLimits: ModelLimits = {
  headersMs: 20_000,
  firstByteMs: 120_000,
  idleMs: 20_000,
  afterFinishMs: 5000,
  attemptMs: 20 * 60_000,
  attempts: 3,
  backoffMs: 500,
  backoffMaxMs: 8000,
  retryAfterMaxMs: 30_000,
};

export function mayRepeat(failure: CallFailure, limits: ModelLimits): boolean {
  return failure.remedy === 'retry' && (failure.retryAfterMs ?? 0) <= limits.retryAfterMaxMs;
}

/** @param attempt the number of the failed attempt, from 1 */
export function waitBefore(attempt: number, { failure, limits }: { failure: CallFailure; limits: ModelLimits }): number {
  const plan = { firstMs: limits.backoffMs, maxMs: limits.backoffMaxMs, least: 0.5, jitter: 0.5 };
  return Math.max(backoffMs(attempt, plan), failure.retryAfterMs ?? 0);
}

/** Throws the signal's own reason, not the timer's wrapping of it. */
export async function pause(waitMs: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(waitMs, undefined, { signal });
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
}

interface Called {
  readonly ref: string;
  readonly apiKey: string | null;
  readonly ownKey?: boolean | undefined;
}

export function asModelError(failure: CallFailure, { ref, apiKey, ownKey }: Called): ModelError {
  const message = `${ref}: ${redact(failure.message, apiKey)}`;
  const { status, code } = failure;
  // The parser's message quotes pieces of what the provider wrote, from which a key cannot be taken out.
  const cause = isSyntaxError(failure.cause) ? undefined : failure.cause;
  return new ModelError(failure.kind, message, { model: ref, status, code: code && redact(code, apiKey), ownKey, cause });
}

function isSyntaxError(cause: unknown): boolean {
  return typeof cause === 'object' && cause !== null && 'name' in cause && cause.name === 'SyntaxError';
}

/** Shorter ones are placeholders of servers that ask for no key. */
const SECRET_MIN_CHARACTERS = 8;

/** Providers like to quote the key they refuse. An answer that was cut may end within it. */
export function redact(message: string, apiKey: string | null): string {
  if (apiKey === null || apiKey.length < SECRET_MIN_CHARACTERS) return message;
  const whole = message.replaceAll(apiKey, '[key]').replaceAll(encodeURIComponent(apiKey), '[key]');
  for (let length = apiKey.length - 1; length >= SECRET_MIN_CHARACTERS; length -= 1)
    if (whole.endsWith(apiKey.slice(0, length))) return `${whole.slice(0, -length)}[key]`;
  return whole;
}
