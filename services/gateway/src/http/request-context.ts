import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { Request, RequestHandler, Response } from 'express';
import { AppError, chooseErrorShape, routes, type ErrorShape } from '@concierge/contract';
import { isSameSecret, type Log } from '@concierge/runtime';
import type { Authenticated, TenantScope } from '@concierge/tenant';
import type { GatewayMetrics } from '../metrics.ts';
import { hasOperatorCookie } from './operator-cookie.ts';

const sane = /^[\w.:-]{8,128}$/u;

/** A caller's `X-Request-Id` when it is one that can stand in logs and headers as it is, else a fresh one. */
export function toRequestId(given: string | string[] | undefined): string {
  return typeof given === 'string' && sane.test(given) ? given : `r_${randomUUID().replaceAll('-', '')}`;
}

/** The caller's span (W3C Trace Context); what is none is ignored. */
export function readTraceparent(headers: Readonly<Record<string, unknown>> = {}): string | undefined {
  const { traceparent: given } = headers;
  return typeof given === 'string' && /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/u.test(given) ? given : undefined;
}

/** Under whose name a message is accepted. */
export interface MessageSource {
  readonly scope: TenantScope;
  readonly keyId: string | null;
  readonly dedupeId: string | null;
  /** The caller's span (W3C Trace Context). */
  readonly traceparent?: string | undefined;
}

/** The identity that a caller's key and `Idempotency-Key` give it. */
export function sourceOfCaller(
  { scope, key }: Pick<Authenticated, 'scope' | 'key'>,
  idempotencyKey: string | undefined,
  request?: Pick<Request, 'headers'>,
): MessageSource {
  const dedupeId = idempotencyKey === undefined ? null : `api:${idempotencyKey}`;
  return { scope, keyId: key.id, dedupeId, traceparent: readTraceparent(request?.headers) };
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
    metrics.answered({ route: this.route, method: this.#method, status }, ms / 1000);
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

const bearer = /^bearer +(?<token>\S+) *$/iu;

/**
 * The key of a request: `X-API-Key`, or `Authorization: Bearer`; both only when they agree.
 * @throws AppError `missing_key`, `invalid_key`
 */
export function readApiKey(headers: IncomingHttpHeaders): string {
  const plain = headers['x-api-key'];
  if (Array.isArray(plain)) throw new AppError('invalid_key', 'The request carries more than one key.');
  const token = bearerToken(headers);
  if (token === undefined) return present(plain);
  if (plain !== undefined && plain !== token) throw new AppError('invalid_key', 'The request carries two different keys.');
  return present(token);
}

/** The token of `Authorization: Bearer`. @throws AppError `invalid_key` for another scheme */
export function bearerToken({ authorization }: IncomingHttpHeaders): string | undefined {
  if (authorization === undefined) return undefined;
  const token = bearer.exec(authorization)?.groups?.['token'];
  if (token === undefined) throw new AppError('invalid_key', 'Authorization must read Bearer <key>.');
  return token;
}

function present(key: string | undefined): string {
  if (key === undefined || key === '') throw new AppError('missing_key');
  return key;
}

/** The parts of a request that are checked. */
export interface Asker {
  readonly method?: string | undefined;
  readonly socket: { readonly remoteAddress?: string | undefined };
  readonly headers: IncomingHttpHeaders;
}

const loopbackHosts = new Set(['localhost', '127.0.0.1', '[::1]']);

/** 127.0.0.0/8 and ::1, also when IPv4 is written as IPv6. */
function isLoopback(address: string | undefined): boolean {
  return address !== undefined && /^(?:::1|(?:::ffff:)?127(?:\.\d{1,3}){3})$/u.test(address);
}

/**
 * Whether a request comes from this machine, is not forwarded for another one, names no foreign host (DNS
 * rebinding), and was not made by a page of another site.
 */
function comesFromHere(request: Asker): boolean {
  if (!isLoopback(request.socket.remoteAddress)) return false;
  if (!loopbackHosts.has((request.headers.host ?? '').replace(/:\d+$/u, '').toLowerCase())) return false;
  if (request.headers.forwarded !== undefined) return false;
  if (!isOriginFromHere(request.headers.origin)) return false;
  const hops = request.headers['x-forwarded-for'];
  return hops === undefined || (typeof hops === 'string' && hops.split(',').every((hop) => isLoopback(hop.trim())));
}

/** A browser on this machine may send what a page of another site made up: it names that page's origin. */
function isOriginFromHere(origin: string | undefined): boolean {
  return origin === undefined || (URL.canParse(origin) && loopbackHosts.has(new URL(origin).hostname));
}

/** Lets operators in: with the token where one is set, else on this machine only. @throws AppError */
export function guardOperator(request: Asker, opsToken: string | undefined): void {
  if (opsToken === undefined) {
    if (comesFromHere(request)) return;
    throw new AppError('not_found');
  }
  if (hasOperatorCookie(request, opsToken)) return;
  const given = bearerToken(request.headers);
  if (given === undefined)
    throw new AppError('missing_key', `The operators\u2019 token is required. In a browser: sign in at ${routes.signInPage.path}.`);
  if (!isSameSecret(given, opsToken)) throw new AppError('invalid_key', 'The operators\u2019 token is not valid.');
}
