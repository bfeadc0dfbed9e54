import { setTimeout as sleep } from 'node:timers/promises';
import { backoffMs } from '@concierge/contract';
import { ModelError } from '../model-error.ts';
import type { CallFailure } from './call-failure.ts';
import type { ModelLimits } from './limits.ts';

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

export function asModelError(failure: CallFailure, { ref, apiKey }: { readonly ref: string; readonly apiKey: string | null }): ModelError {
  const message = `${ref}: ${redact(failure.message, apiKey)}`;
  const { status, code, cause } = failure;
  return new ModelError(failure.kind, message, { model: ref, status, code, cause });
}

/** Shorter ones are placeholders of servers that ask for no key. */
const SECRET_MIN_CHARACTERS = 8;

/** Providers like to quote the key they refuse. */
export function redact(message: string, apiKey: string | null): string {
  return apiKey === null || apiKey.length < SECRET_MIN_CHARACTERS ? message : message.replaceAll(apiKey, '[key]');
}
