import { randomUUID } from 'node:crypto';
import { AppError, errorCodes, onOneLine, type ErrorCode, type Problem } from '@concierge/contract';
import { ConfigError } from '@concierge/runtime';

/** One line for a reader. */
export function failureLine(error: unknown): string {
  const fields = error instanceof AppError ? (error.errors ?? []) : [];
  const details = fields.map(({ path, message }) => (path === '' ? message : `${path} ${message}`));
  const line = error instanceof Error ? error.message : String(error);
  return onOneLine([line, ...details].join(' '));
}

function toErrorCode(error: unknown): ErrorCode {
  if (error instanceof AppError) return error.code;
  return error instanceof ConfigError ? 'invalid_request' : 'internal_error';
}

/** The same problem document that the API answers with (RFC 9457). */
export function describeFailure(error: unknown): Problem {
  const code = toErrorCode(error);
  const { status, title } = errorCodes[code];
  const errors = error instanceof AppError && error.errors !== undefined ? { errors: [...error.errors] } : {};
  return { type: `urn:concierge:problem:${code}`, title, status, detail: failureLine(error), code, requestId: randomUUID(), ...errors };
}
