import type { ModelFacts } from '@concierge/contract';

/** Time limits of a provider call. All of them end at once when the caller's signal aborts. */
export interface ModelLimits {
  /** From the request to the headers of its answer. */
  readonly headersMs: number;
  /**
   * The longest silence from the headers until the reply begins: reasoning is silent. Shorter than `headersMs`, it
   * counts before the headers, too.
   */
  readonly firstByteMs: number;
  /** The longest pause between two pieces of a reply that has begun. */
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
export function limitsOf(limits: ModelLimits, { timeouts = {} }: Pick<ModelFacts, 'timeouts'>): ModelLimits {
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
