import type { z } from 'zod';
import { findErrorFacts, type ErrorCode } from './error-code.ts';
import { limits } from '../limits.ts';

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
    super(detail ?? findErrorFacts(code).title, { cause: options.cause });
    this.code = code;
    this.errors = options.errors;
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.headers = options.headers ?? {};
  }

  get status(): number {
    return findErrorFacts(this.code).status;
  }

  get retryable(): boolean {
    return findErrorFacts(this.code).retryable;
  }
}

/** A message may name what was sent: no answer gets long because a request was. */
const MESSAGE_MAX_CHARACTERS = 300;

/** What is wrong with a value and where, for the one who sent it; of many problems the first. */
export function invalidFields(error: Pick<z.ZodError, 'issues'>): InvalidField[] {
  return error.issues
    .slice(0, limits.invalidFieldsMax)
    .map(({ path, message }) => ({ path: path.map(String).join('.'), message: cut(message) }));
}

/** The same on one line. */
export function invalidFieldsText(error: Pick<z.ZodError, 'issues'>): string {
  return invalidFields(error)
    .map((field) => invalidFieldText(field))
    .join('; ');
}

/**
 * `what` begins the error's sentence, such as "The schedule".
 * @throws AppError `invalid_request` with the first problems and their places
 */
export function parseInput<Schema extends z.ZodType>(schema: Schema, input: unknown, what?: string): z.output<Schema> {
  const parsed = schema.safeParse(input);
  if (parsed.success) return parsed.data;
  const detail = what === undefined ? undefined : `${what} is not valid: ${invalidFieldsText(parsed.error)}.`;
  throw new AppError('invalid_request', detail, { errors: invalidFields(parsed.error) });
}

/** An error in the value as a whole has an empty path, and nothing stands before the message. */
export function invalidFieldText({ path, message }: InvalidField): string {
  return path === '' ? message : `${path}: ${message}`;
}

function cut(message: string): string {
  return message.length <= MESSAGE_MAX_CHARACTERS ? message : `${message.slice(0, MESSAGE_MAX_CHARACTERS)}\u2026`;
}
