import type { ErrorRequestHandler } from 'express';
import type { Log } from '@concierge/runtime';
import type { GatewayMetrics } from '../metrics.ts';
import { readRequestContext } from './exchange.ts';
import { answerUnread } from './last-answer.ts';
import { toAppError } from './problem.ts';
import { renderError } from './render-error.ts';
import { mayBeLong } from './read-body.ts';

/**
 * The one place that turns what was thrown into an answer, in the format of the path's protocol. What a client may not
 * see is logged under the request's id.
 */
export function handleError(options: { readonly metrics: GatewayMetrics; readonly log: Log }): ErrorRequestHandler {
  // Express knows an error handler by its four parameters.
  // eslint-disable-next-line max-params -- see above
  return (thrown: unknown, request, response, _next) => {
    const error = toAppError(thrown);
    const exchange = readRequestContext(response);
    // The client has gone, or the answer has begun: no error can be sent any more.
    if (response.headersSent || response.destroyed) {
      if (!response.destroyed)
        options.log.error({ err: thrown, requestId: exchange.requestId, route: exchange.route }, 'an answer was cut off');
      response.destroy();
      return;
    }
    if (error.status >= 500 && error.code !== 'shutting_down') {
      options.log.error(
        { err: error.cause ?? error, code: error.code, requestId: exchange.requestId, route: exchange.route },
        'request failed',
      );
    }
    response.removeHeader('Content-Length');
    response.removeHeader('ETag');
    const { headers, body } = renderError(error, exchange);
    response.status(error.status).set(headers);
    const isUnread = !request.complete && (headers['Connection'] === 'close' || mayBeLong(request));
    if (isUnread) {
      response.set({ Connection: 'close', 'Content-Length': String(Buffer.byteLength(body)) });
      answerUnread(response, body);
    } else {
      response.end(body);
    }
    exchange.answered(error.status, options);
  };
}
