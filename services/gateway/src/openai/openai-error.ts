import type { AppError, ErrorCode, OpenAiError } from '@concierge/contract';

type ErrorType = OpenAiError['error']['type'];

/** Codes that have another name in OpenAI's clients. */
const knownAs: Partial<Record<ErrorCode, string>> = {
  missing_key: 'invalid_api_key',
  invalid_key: 'invalid_api_key',
  revoked_key: 'invalid_api_key',
  rate_limited: 'rate_limit_exceeded',
  too_many_waiting: 'rate_limit_exceeded',
};

/** An error as OpenAI's API shows it. It names the first of several problems with a request. */
export function toOpenAiError(error: AppError): OpenAiError {
  const [first] = error.errors ?? [];
  const param = first === undefined || first.path === '' ? null : toParam(first.path);
  const message = first === undefined ? error.message : [param, first.message].filter((part) => part !== null).join(': ');
  return { error: { message, type: toErrorType(error.status), param, code: toOpenAiCode(error.code, param) } };
}

function toOpenAiCode(code: ErrorCode, param: string | null): string {
  if (code === 'not_found' && param === 'model') return 'model_not_found';
  return knownAs[code] ?? code;
}

function toErrorType(status: number): ErrorType {
  if (status === 429) return 'rate_limit_error';
  return status >= 500 ? 'server_error' : 'invalid_request_error';
}

/** `messages.0.content` as `messages[0].content`. */
function toParam(path: string): string {
  return path.replaceAll(/\.(?<index>\d+)(?=\.|$)/gu, '[$<index>]');
}

/** A client waits as long as it is asked to; beyond this its user should see an error instead. */
const RETRY_WITHIN_SECONDS = 60;

/**
 * OpenAI's clients ask again by themselves after 408, 409, 429 and 5xx, unless a header forbids it. Once there is a
 * turn, asking again would be a second one.
 */
export function openAiErrorHeaders(error: AppError, { hasTurn }: { readonly hasTurn: boolean }): Record<string, string> {
  const isSoon = (error.retryAfterSeconds ?? 0) <= RETRY_WITHIN_SECONDS;
  return { 'Content-Type': 'application/json; charset=utf-8', 'X-Should-Retry': String(error.retryable && isSoon && !hasTurn) };
}
