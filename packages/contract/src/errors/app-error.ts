import { errorCodes, type ErrorCode } from './error-code.ts';

export interface InvalidField {
  /** Where, as in `attachments.0.id`; empty for the whole. */
  readonly path: string;
  readonly message: string;
}

export interface AppErrorOptions {
  readonly cause?: unknown;
  readonly errors?: readonly InvalidField[];
  /** Sent as `Retry-After`. */
  readonly retryAfterSeconds?: number;
  /** Extra response headers, such as `Allow` or `RateLimit`. */
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * The one error that is meant for a client. `message` becomes the problem's `detail` and must hold nothing internal;
 * what happened inside goes into `cause`, which is logged and never sent.
 */
export class AppError extends Error {
  override readonly name = 'AppError';
  readonly code: ErrorCode;
  readonly errors: readonly InvalidField[] | undefined;
  readonly retryAfterSeconds: number | undefined;
  readonly headers: Readonly<Record<string, string>>;

  constructor(code: ErrorCode, detail?: string, options: AppErrorOptions = {}) {
    super(detail ?? errorCodes[code].title, { cause: options.cause });
    this.code = code;
    this.errors = options.errors;
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.headers = options.headers ?? {};
  }

  get status(): number {
    return errorCodes[this.code].status;
  }

  get retryable(): boolean {
    return errorCodes[this.code].retryable;
  }
}
