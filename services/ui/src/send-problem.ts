import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { errorCodes, type AppError, type Problem } from '@concierge/contract';

/**
 * Answers with a problem document (RFC 9457), as every error answer of the service is one. The response must not have
 * begun.
 */
export function sendProblem(response: ServerResponse, error: AppError): void {
  const requestId = randomUUID();
  const problem: Problem = {
    type: 'about:blank',
    title: errorCodes[error.code].title,
    status: error.status,
    detail: error.message,
    code: error.code,
    requestId,
  };
  const body = JSON.stringify(problem);
  response.writeHead(error.status, {
    'content-type': 'application/problem+json',
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'x-request-id': requestId,
    ...(error.retryAfterSeconds === undefined ? {} : { 'retry-after': String(error.retryAfterSeconds) }),
    ...error.headers,
  });
  response.end(response.req.method === 'HEAD' ? undefined : body);
}
