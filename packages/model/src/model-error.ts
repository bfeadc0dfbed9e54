/**
 * - `context_overflow`: the prompt does not fit; make it shorter and ask again.
 * - `rate_limited`, `unavailable`, `timeout`: the provider may answer later.
 * - `rejected`: the same request will be refused again (key, credit, model name, request itself).
 */
export type ModelErrorKind = 'context_overflow' | 'rate_limited' | 'unavailable' | 'rejected' | 'timeout';

export interface ModelErrorOptions {
  /** `provider/model` that failed last. */
  readonly model?: string | undefined;
  /** HTTP status of the provider's answer, when there was one. */
  readonly status?: number | undefined;
  /** What the provider calls the failure, as in `insufficient_quota`, when it names one. */
  readonly code?: string | undefined;
  readonly cause?: unknown;
}

/**
 * A reply could not be had, after retries and fallbacks. `message` is for operators: it may quote the provider and is
 * never shown to a client.
 */
export class ModelError extends Error {
  override readonly name = 'ModelError';
  readonly kind: ModelErrorKind;
  readonly model: string | undefined;
  readonly status: number | undefined;
  readonly code: string | undefined;

  constructor(kind: ModelErrorKind, message: string, options: ModelErrorOptions = {}) {
    super(message, { cause: options.cause });
    this.kind = kind;
    this.model = options.model;
    this.status = options.status;
    this.code = options.code;
  }
}

/** What `Model.isContextOverflow` answers for every model whose failures are a `ModelError`. */
export function isContextOverflow(error: unknown): boolean {
  return error instanceof ModelError && error.kind === 'context_overflow';
}
