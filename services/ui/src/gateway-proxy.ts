import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { AppError, limits } from '@concierge/contract';
import { isSecure, waitForAnswer, type Log } from '@concierge/runtime/process';
import type { NextFunction, Request, Response } from 'express';
import { createProxyMiddleware, type RequestHandler } from 'http-proxy-middleware';
import { sendProblem } from './send-problem.ts';

const CONNECT_TIMEOUT_MS = 5000;
/** A single JSON reply says nothing until its turn has ended. */
const FIRST_BYTE_TIMEOUT_MS = limits.turnTimeoutMs + 60_000;
/**
 * Event streams carry a comment at every heartbeat; silence several times as long means that the other side is gone.
 */
const SILENCE_TIMEOUT_MS = limits.sseHeartbeatMs * 4;
const RETRY_AFTER_SECONDS = 2;

/** Meant for one connection, not for what lies behind it (RFC 9110, 7.6.1). */
const hopByHop = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
]);

function endToEnd(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const named = (headers.connection ?? '').split(',').map((name) => name.trim().toLowerCase());
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !hopByHop.has(name) && !named.includes(name)));
}

/**
 * Headers for the gateway: end-to-end ones as they came, and who really asked. The library's `xfwd` keeps what a client
 * claims.
 */
function requestHeaders(request: IncomingMessage, gateway: URL): IncomingHttpHeaders {
  const { expect: _answeredHere, ...headers } = endToEnd(request.headers);
  const before = request.headers['x-forwarded-for'];
  const client = request.socket.remoteAddress ?? '';
  return {
    ...headers,
    host: gateway.host,
    'x-forwarded-for': before === undefined ? client : `${String(before)}, ${client}`,
    'x-forwarded-host': request.headers.host ?? '',
    'x-forwarded-proto': isSecure(request) ? 'https' : 'http',
    // A body without a length stays one: node would otherwise send a DELETE's body unframed.
    ...(request.headers['transfer-encoding'] === undefined ? {} : { 'transfer-encoding': 'chunked' }),
  };
}

/** Not by a time-out of the socket: one that opened while this process stood still would be given up as well. */
async function limitConnecting(outgoing: ClientRequest): Promise<void> {
  await waitForAnswer(CONNECT_TIMEOUT_MS);
  if (outgoing.socket?.connecting === true) outgoing.destroy(new Error('the gateway took no connection in time'));
}

/**
 * Passes requests on to the gateway and its answers back, byte by byte as they come. A browser that goes away ends its
 * request at the gateway too. Closing is `stop`: event streams are cut (their readers resume), everything else may
 * finish.
 */
export class GatewayProxy {
  readonly #gateway: URL;
  readonly #log: Log;
  readonly #proxy: RequestHandler<Request, Response, NextFunction>;
  readonly #streams = new Set<Response>();
  #reachable = true;

  constructor({ gatewayUrl, log }: { readonly gatewayUrl: URL; readonly log: Log }) {
    this.#gateway = gatewayUrl;
    this.#log = log;
    this.#proxy = createProxyMiddleware<Request, Response, NextFunction>({
      target: gatewayUrl.origin,
      // A connection for each request: a console's traffic is small, and a connection that is not kept cannot close
      // under a request.
      agent: false,
      // The library passes hop-by-hop headers on, and sends the head of an answer only with its first byte.
      selfHandleResponse: true,
      on: {
        proxyReq: (outgoing) => {
          // Starts when the connection is open; until then it has a time of its own.
          outgoing.setTimeout(FIRST_BYTE_TIMEOUT_MS, () => void outgoing.destroy(new Error('the gateway did not answer in time')));
          void limitConnecting(outgoing);
        },
        proxyRes: (answer, _request, response) => this.#passBack(answer, response),
        error: (error, _request, response) => {
          if (!(response instanceof Socket)) this.#refuse(response, error);
        },
      },
    });
  }

  forward(request: Request, response: Response, next: NextFunction): void {
    request.headers = requestHeaders(request, this.#gateway);
    void this.#proxy(request, response, next);
  }

  /** Cuts the open event streams. */
  stop(): void {
    for (const response of this.#streams) response.destroy();
  }

  #passBack(answer: IncomingMessage, response: Response): void {
    if (!this.#reachable) this.#log.info('the gateway answers again');
    this.#reachable = true;
    answer.socket.setTimeout(SILENCE_TIMEOUT_MS);
    if (answer.headers['content-type']?.startsWith('text/event-stream') === true) {
      this.#streams.add(response);
      response.once('close', () => this.#streams.delete(response));
    }
    response.writeHead(answer.statusCode ?? 502, endToEnd(answer.headers));
    response.flushHeaders();
    answer.pipe(response);
  }

  #refuse(response: Response, error: Error): void {
    if (response.destroyed || response.writableEnded) return;
    if (response.headersSent) {
      response.destroy();
      return;
    }
    if (this.#reachable) this.#log.warn({ err: error, gateway: this.#gateway.origin }, 'the gateway does not answer');
    this.#reachable = false;
    sendProblem(
      response,
      new AppError('overloaded', 'The console cannot reach the gateway at the moment. Check that it runs, then try again.', {
        retryAfterSeconds: RETRY_AFTER_SECONDS,
      }),
    );
  }
}
