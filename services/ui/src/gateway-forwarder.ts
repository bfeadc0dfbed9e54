import { Agent as HttpAgent, request as httpRequest, type ClientRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { AppError, limits } from '@concierge/contract';
import type { Log } from '@concierge/runtime/process';
import { requestHeaders, responseHeaders } from './forwarded-headers.ts';
import { sendProblem } from './send-problem.ts';

const CONNECT_TIMEOUT_MS = 5000;
/** A single JSON reply sends no byte until its turn has ended. */
const FIRST_BYTE_TIMEOUT_MS = limits.turnTimeoutMs + 60_000;
/**
 * Event streams carry a comment at every heartbeat; silence several times as long means that the other side is gone.
 */
const SILENCE_TIMEOUT_MS = limits.sseHeartbeatMs * 4;
const RETRY_AFTER_SECONDS = 2;

/**
 * Passes requests on to the gateway and its answers back, byte by byte as they come. A browser that goes away ends its
 * request at the gateway too. Closing is `stop`: event streams are cut (their readers resume), everything else may
 * finish.
 */
export class GatewayForwarder {
  readonly #gateway: URL;
  readonly #log: Log;
  // A connection for each request: a console's traffic is small, and a connection that is not kept cannot close under a
  // request.
  readonly #agent: HttpAgent;
  readonly #streams = new Set<ServerResponse>();
  #reachable = true;

  constructor({ gatewayUrl, log }: { readonly gatewayUrl: URL; readonly log: Log }) {
    this.#gateway = gatewayUrl;
    this.#log = log;
    this.#agent = gatewayUrl.protocol === 'https:' ? new HttpsAgent({ keepAlive: false }) : new HttpAgent({ keepAlive: false });
  }

  forward(request: IncomingMessage, response: ServerResponse): void {
    const open = this.#gateway.protocol === 'https:' ? httpsRequest : httpRequest;
    const outgoing = open({
      // Never resolved as an address: the request's own target must not choose the host.
      protocol: this.#gateway.protocol,
      hostname: this.#gateway.hostname.replaceAll(/[[\]]/gu, ''),
      port: this.#gateway.port,
      path: request.url ?? '/',
      method: request.method ?? 'GET',
      headers: requestHeaders(request, this.#gateway),
      agent: this.#agent,
    });
    this.#watchConnecting(outgoing);
    outgoing.on('response', (answer) => {
      this.#passBack(answer, response);
    });
    outgoing.on('error', (error) => {
      this.#refuse(response, error);
    });
    response.on('close', () => {
      outgoing.destroy();
    });
    request.pipe(outgoing);
  }

  /** Cuts the open event streams. */
  stop(): void {
    for (const response of this.#streams) response.destroy();
  }

  #watchConnecting(outgoing: ClientRequest): void {
    const deadline = setTimeout(() => outgoing.destroy(new Error('the gateway did not accept a connection in time')), CONNECT_TIMEOUT_MS);
    outgoing.on('socket', (socket) => {
      socket.once('connect', () => {
        clearTimeout(deadline);
        socket.setTimeout(FIRST_BYTE_TIMEOUT_MS, () => outgoing.destroy(new Error('the gateway went silent')));
      });
    });
    outgoing.once('close', () => {
      clearTimeout(deadline);
    });
  }

  #passBack(answer: IncomingMessage, response: ServerResponse): void {
    if (!this.#reachable) this.#log.info('the gateway answers again');
    this.#reachable = true;
    answer.socket.setTimeout(SILENCE_TIMEOUT_MS);
    if (answer.headers['content-type']?.startsWith('text/event-stream') === true) {
      this.#streams.add(response);
      response.once('close', () => this.#streams.delete(response));
    }
    // The browser must see a cut answer as cut, never as finished.
    answer.on('error', () => response.destroy());
    response.writeHead(answer.statusCode ?? 502, responseHeaders(answer));
    response.flushHeaders();
    answer.pipe(response);
  }

  #refuse(response: ServerResponse, error: Error): void {
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
