import { z } from 'zod';

interface ErrorCodeFacts {
  readonly status: number;
  readonly title: string;
  /** The same request may succeed later. */
  readonly retryable: boolean;
}

/** Every code of the interface (contract §5), with the status and the title of its problem document (RFC 9457). */
export const errorCodes = {
  invalid_request: { status: 400, title: 'The request is not valid', retryable: false },
  invalid_json: { status: 400, title: 'The body is not valid JSON', retryable: false },
  missing_key: { status: 401, title: 'An API key is required', retryable: false },
  invalid_key: { status: 401, title: 'The API key is not valid', retryable: false },
  revoked_key: { status: 401, title: 'The API key has been revoked', retryable: false },
  invalid_signature: { status: 401, title: 'The signature is not valid', retryable: false },
  scope_required: { status: 403, title: 'The API key lacks the needed scope', retryable: false },
  origin_refused: { status: 403, title: 'The widget may not be used from this origin', retryable: false },
  tenant_suspended: { status: 403, title: 'The tenant is suspended', retryable: false },
  not_found: { status: 404, title: 'Not found', retryable: false },
  method_not_allowed: { status: 405, title: 'Method not allowed', retryable: false },
  request_timeout: { status: 408, title: 'The request did not arrive in time', retryable: true },
  session_busy: { status: 409, title: 'The session is busy', retryable: true },
  contact_mismatch: { status: 409, title: 'contact_id and sender name different sessions', retryable: false },
  conflict: { status: 409, title: 'The resource has been changed or exists already', retryable: false },
  precondition_failed: { status: 412, title: 'The resource has changed since it was read', retryable: false },
  too_large: { status: 413, title: 'The body is too large', retryable: false },
  memory_quota: { status: 413, title: 'The memory quota is used up', retryable: false },
  unsupported_media_type: { status: 415, title: 'The media type is not supported', retryable: false },
  idempotency_conflict: { status: 422, title: 'The Idempotency-Key was used with another body', retryable: false },
  headers_too_large: { status: 431, title: 'The request headers are too large', retryable: false },
  rate_limited: { status: 429, title: 'Too many requests', retryable: true },
  budget_exceeded: { status: 429, title: 'The budget for model calls is spent', retryable: false },
  too_many_waiting: { status: 429, title: 'Too many turns wait in this session', retryable: true },
  internal_error: { status: 500, title: 'Something went wrong on our side', retryable: true },
  turn_crashed: { status: 500, title: 'The turn stopped its worker again and again', retryable: false },
  provider_error: { status: 502, title: 'The model provider failed', retryable: true },
  overloaded: { status: 503, title: 'The service is overloaded', retryable: true },
  shutting_down: { status: 503, title: 'The service is shutting down', retryable: true },
  turn_timeout: { status: 504, title: 'The turn took too long', retryable: true },
} as const satisfies Record<string, ErrorCodeFacts>;

export type ErrorCode = keyof typeof errorCodes;
export const errorCodeNames = Object.keys(errorCodes) as [ErrorCode, ...ErrorCode[]]; // eslint-disable-line typescript/no-unsafe-type-assertion -- keys of a literal

/** A code of a later version stands for any failure of ours. */
export function findErrorFacts(code: string): ErrorCodeFacts {
  return errorCodes[isErrorCode(code) ? code : 'internal_error'];
}

function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(errorCodes, code);
}

/** application/problem+json (RFC 9457) as every error answer carries it. */
export const Problem = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    code: z.enum(errorCodeNames),
    requestId: z.string(),
    errors: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
  })
  .meta({ id: 'Problem' });
export type Problem = z.infer<typeof Problem>;
