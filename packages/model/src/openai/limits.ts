/** Patience with a provider. All of it ends at once when the caller's signal aborts. */
export interface ModelLimits {
  /** From the request to the first sign of life, and between signs of life until the reply begins (reasoning is silent). */
  readonly firstByteMs: number;
  /** Between two pieces of a reply that has begun. */
  readonly idleMs: number;
  /** For usage figures after the finish reason. */
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

export const defaultModelLimits: ModelLimits = {
  firstByteMs: 120_000,
  idleMs: 60_000,
  afterFinishMs: 5000,
  attemptMs: 20 * 60_000,
  attempts: 3,
  backoffMs: 500,
  backoffMaxMs: 8000,
  retryAfterMaxMs: 30_000,
};
