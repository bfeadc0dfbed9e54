import type { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { ErrorRequestHandler } from 'express';
import { isUnavailable, type Log } from '@concierge/runtime';
import { AppError, findErrorFacts, limits, type Problem } from '@concierge/contract';
import type { GatewayMetrics } from '../metrics.ts';
import { readRequestContext, type RequestContext } from './request-context.ts';
import { mayBeLong } from './request-body.ts';
import { openAiErrorHeaders, toOpenAiError } from '../openai/openai-error.ts';

/**
 * The one place that turns what was thrown into an answer, in the format of the path's protocol. What a client may not
 * see is logged under the request's id.
 */
export function handleError(options: { readonly metrics: GatewayMetrics; readonly log: Log }): ErrorRequestHandler {
  // Express knows an error handler by its four parameters.
  // eslint-disable-next-line max-params -- see above
  return (thrown: unknown, request, response, _next) => {
    const error = toAppError(thrown);
    const context = readRequestContext(response);
    // The client has gone, or the answer has begun: no error can be sent any more.
    if (response.headersSent || response.destroyed) {
      if (!response.destroyed)
        options.log.error({ err: thrown, requestId: context.requestId, route: context.route }, 'an answer was cut off');
      response.destroy();
      return;
    }
    if (error.status >= 500 && error.code !== 'shutting_down') {
      options.log.error(
        { err: error.cause ?? error, code: error.code, requestId: context.requestId, route: context.route },
        'request failed',
      );
    }
    response.removeHeader('Content-Length');
    response.removeHeader('ETag');
    const { headers, body } = renderError(error, context);
    response.status(error.status).set(headers);
    const isUnread = !request.complete && (headers['Connection'] === 'close' || mayBeLong(request));
    if (isUnread) {
      response.set({ Connection: 'close', 'Content-Length': String(Buffer.byteLength(body)) });
      answerUnread(response, body);
    } else {
      response.end(body);
    }
    context.answered(error.status, options);
  };
}

interface RenderedError {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Renders an error in the format of its path's protocol. */
function renderError(error: AppError, { shape, requestId, turnId }: Pick<RequestContext, 'shape' | 'requestId' | 'turnId'>): RenderedError {
  const headers = problemHeaders(error);
  switch (shape) {
    case 'problem': {
      return { headers, body: JSON.stringify(toProblem(error, requestId)) };
    }
    case 'openai': {
      const own = openAiErrorHeaders(error, { hasTurn: turnId !== undefined });
      return { headers: { ...headers, ...own }, body: JSON.stringify(toOpenAiError(error)) };
    }
  }
}

export const problemType = 'application/problem+json';

/** RFC 9457. `type` names the code; it is an identifier, not a page. */
export function toProblem(error: AppError, requestId: string): Problem {
  return {
    type: `urn:concierge:problem:${error.code}`,
    title: findErrorFacts(error.code).title,
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

/** How long a client may take to read the last answer on its connection and to close it. */
const LINGER_MS = 1000;

/**
 * Answers on a bare connection and ends it. Node keeps a connection half open until the client closes it, too: a client
 * that never does would hold it for ever. What still arrives is discarded, for TCP resets a connection that is closed
 * with bytes unread, and the answer may be lost.
 */
export function answerBroken(socket: Duplex, answer: string): void {
  socket.end(answer);
  socket.once('end', () => socket.destroy());
  socket.resume();
  destroyLater(socket);
}

/**
 * Answers a request whose body is not read, and ends the connection: when the client has sent the rest or has closed,
 * and after a moment in any case. The headers must be set, `Content-Length` among them: with it the client has the
 * whole answer although the response is still open.
 */
function answerUnread(response: ServerResponse, body: string): void {
  response.write(body);
  const { req: request, socket } = response;
  request.once('end', () => response.end());
  request.resume();
  if (socket !== null) destroyLater(socket);
}

function destroyLater(socket: Duplex): void {
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once('close', () => {
    clearTimeout(timer);
  });
}
