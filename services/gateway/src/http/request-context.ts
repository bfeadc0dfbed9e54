import { randomUUID } from 'node:crypto';
import type { Request, RequestHandler, Response } from 'express';
import { AppError, chooseErrorShape, type ErrorShape } from '@concierge/contract';
import type { Log } from '@concierge/runtime';
import type { GatewayMetrics } from '../metrics.ts';

const sane = /^[\w.:-]{8,128}$/u;

/** A caller's `X-Request-Id` when it is one that can stand in logs and headers as it is, else a fresh one. */
export function toRequestId(given: string | string[] | undefined): string {
  return typeof given === 'string' && sane.test(given) ? given : `r_${randomUUID().replaceAll('-', '')}`;
}

declare global {
  // eslint-disable-next-line typescript/no-namespace -- how Express lets its response be typed
  namespace Express {
    interface Locals {
      context?: RequestContext;
    }
  }
}

/** Machines poll these paths all the time: they are not logged. */
const quietRoutes = new Set(['livez', 'readyz', 'metrics']);

/** One request and its answer, for the log and the metrics. Only the path is kept: a query may hold a secret. */
export class RequestContext {
  readonly requestId: string;
  readonly #method: string;
  readonly #path: string;
  readonly #startedMs = performance.now();
  /** Id of the route, once there is one. */
  route = 'unknown';
  tenantId: string | undefined;
  turnId: string | undefined;

  constructor(requestId: string, { method, path }: Pick<Request, 'method' | 'path'>) {
    this.requestId = requestId;
    this.#method = method;
    this.#path = path;
  }

  /** How the path's protocol shows errors. */
  get shape(): ErrorShape {
    return chooseErrorShape(this.#path);
  }

  /**
   * Counts and logs the answer; called when it begins, so that an event stream counts with the time it took to accept
   * its turn.
   */
  answered(status: number, { metrics, log }: { readonly metrics: GatewayMetrics; readonly log: Log }): void {
    const ms = performance.now() - this.#startedMs;
    metrics.requests.observe({ route: this.route, method: this.#method, status: String(status) }, ms / 1000);
    if (quietRoutes.has(this.route) && status < 400) return;
    const { requestId, tenantId, turnId } = this;
    log.info({ requestId, tenantId, turnId, method: this.#method, path: this.#path, status, ms: Math.round(ms) }, 'request');
  }
}

/** The first middleware: gives every request its id; no answer is for a cache. */
export function beginRequest(): RequestHandler {
  return (request, response, next) => {
    const requestId = toRequestId(request.headers['x-request-id']);
    response.setHeader('X-Request-Id', requestId).setHeader('Cache-Control', 'no-store');
    // Express's own object has no prototype, which makes it a slow and large one.
    response.locals = { context: new RequestContext(requestId, request) };
    if (hasTwoHosts(request.rawHeaders)) throw new AppError('invalid_request', 'The request has more than one Host.');
    next();
  };
}

/**
 * RFC 9112, 3.2: a request with two Host headers is refused. Node shows the first, and a proxy in front may have used
 * the other.
 */
function hasTwoHosts(rawHeaders: readonly string[]): boolean {
  return rawHeaders.filter((name, index) => index % 2 === 0 && name.toLowerCase() === 'host').length > 1;
}

export function readRequestContext(response: Response): RequestContext {
  const { context } = response.locals;
  if (context === undefined) throw new Error('beginRequest has not run');
  return context;
}

/** Aborts when the client no longer waits for the answer. */
export function goneSignal(response: Response): AbortSignal {
  const gone = new AbortController();
  response.once('close', () => {
    gone.abort(new Error('the client has gone'));
  });
  return gone.signal;
}
