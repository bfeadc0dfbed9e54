import { AppError, errorCodes, limits, type Problem } from '@concierge/contract';
import { isUnavailable } from '@concierge/runtime';

export const problemType = 'application/problem+json';

/** RFC 9457. `type` names the code; it is an identifier, not a page. */
export function toProblem(error: AppError, requestId: string): Problem {
  return {
    type: `urn:concierge:problem:${error.code}`,
    title: errorCodes[error.code].title,
    status: error.status,
    detail: error.message,
    code: error.code,
    requestId,
    ...(error.errors === undefined ? {} : { errors: [...error.errors] }),
  };
}

/** Headers that go with a problem beyond its body: those of the error itself, and what its status asks for. */
export function problemHeaders(error: AppError): Record<string, string> {
  const headers: Record<string, string> = { 'Content-Type': problemType, ...error.headers };
  if (error.retryAfterSeconds !== undefined) headers['Retry-After'] = String(error.retryAfterSeconds);
  else if (error.status === 429 || error.status === 503) headers['Retry-After'] = '1';
  if (error.code === 'missing_key') headers['WWW-Authenticate'] = 'Bearer realm="concierge"';
  if (error.code === 'invalid_key' || error.code === 'revoked_key')
    headers['WWW-Authenticate'] = 'Bearer realm="concierge", error="invalid_token"';
  if (error.code === 'invalid_signature') headers['WWW-Authenticate'] = 'Signature realm="concierge"';
  if (error.code === 'too_many_waiting') Object.assign(headers, waitingHeaders(headers['Retry-After'] ?? '1'));
  // What is left of the body is not read: the connection cannot be used again.
  if (error.code === 'too_large') headers['Connection'] = 'close';
  return headers;
}

function waitingHeaders(retryAfter: string): Record<string, string> {
  return { 'RateLimit-Policy': `"waiting";q=${String(limits.laneMaxWaiting)}`, RateLimit: `"waiting";r=0;t=${retryAfter}` };
}

/** Redis is back within a second or two; a full disk takes longer, and asking again costs little. */
const UNAVAILABLE_RETRY_SECONDS = 2;

/** What a body parser or Express itself throws for a bad request. */
interface HttpFailure {
  readonly status?: unknown;
  readonly type?: unknown;
}

const ofBodyParser: Readonly<Record<string, () => AppError>> = {
  'entity.too.large': () => new AppError('too_large'),
  'encoding.unsupported': () => new AppError('unsupported_media_type', 'The content encoding is not supported.'),
  'request.aborted': () => new AppError('invalid_request', 'The body ended before it was complete.'),
  'request.size.invalid': () => new AppError('invalid_request', 'The body has another size than Content-Length states.'),
};

/**
 * Turns anything thrown into an error that a client may see. An error not meant for clients becomes `overloaded` where
 * it passes, else `internal_error`, with the cause for the log.
 */
export function toAppError(error: unknown): AppError {
  if (error instanceof AppError) return error;
  if (error instanceof URIError) return new AppError('invalid_request', 'The path is not valid percent-encoded UTF-8.', { cause: error });
  const { status, type }: HttpFailure = typeof error === 'object' && error !== null ? error : {};
  const known = typeof type === 'string' && Object.hasOwn(ofBodyParser, type) ? ofBodyParser[type] : undefined;
  if (known !== undefined) return known();
  if (status === 400) return new AppError('invalid_request', 'The request is malformed.', { cause: error });
  if (isUnavailable(error))
    return new AppError('overloaded', 'The service cannot do this right now.', {
      cause: error,
      retryAfterSeconds: UNAVAILABLE_RETRY_SECONDS,
    });
  return new AppError('internal_error', undefined, { cause: error });
}
