import compression from 'compression';
import type { Request, RequestHandler, Response } from 'express';
import { AppError, limits, type KeyScope, type Route, type TenantSettings, parseInput } from '@concierge/contract';
import { duringActivity, type Log } from '@concierge/runtime';
import type { Authenticated, KeyRecord, Tenants } from '@concierge/tenant';
import type { RateLimits, RateLimitState } from '@concierge/turn';
import { z } from 'zod';
import type { GatewayMetrics } from '../metrics.ts';
import { admitOrigin, readWidgetKey, identifyVisitor, type WidgetCaller } from '../widget/widget-caller.ts';
import { BodyBudget, type BodyRoom, bytesToExpect, readBody, requireStreamType } from './request-body.ts';
import type { AnyCaller } from './call.ts';
import type { Drain } from './http-server.ts';
import { takeRequest } from './rate-window.ts';
import type { Siblings } from '../processes/siblings.ts';
import { guardOperator, readApiKey, readRequestContext } from './request-context.ts';

export interface ServeOptions {
  readonly tenants: Pick<Tenants, 'authenticate' | 'openWidget' | 'audit'>;
  readonly rateLimits: RateLimits;
  readonly drain: Drain;
  readonly siblings: Siblings;
  readonly opsToken: string | undefined;
  readonly metrics: GatewayMetrics;
  readonly log: Log;
}

/** A call before its types are those of one route: exactly what `Call` of that route holds. */
export interface UntypedCall {
  readonly request: Request;
  readonly response: Response;
  readonly requestId: string;
  readonly caller: AnyCaller | undefined;
  readonly params: unknown;
  readonly query: unknown;
  readonly headers: unknown;
  readonly body: unknown;
}

export interface UntypedAnswer {
  readonly kind: 'answer' | 'streamed';
  readonly status?: number;
  readonly headers?: Record<string, string>;
  readonly json?: unknown;
  readonly text?: string | Buffer;
}

export type UntypedHandler = (call: UntypedCall) => UntypedAnswer | Promise<UntypedAnswer>;

/** A tenant whose requests are counted. */
type Counted = Pick<Authenticated, 'scope' | 'settings'>;

/**
 * Takes a request through its route, in this order: authentication (with suspension), rate limit, scope, shutdown,
 * body, validation, handler. Errors go to the error handler.
 */
export class RouteServer {
  readonly #options: ServeOptions;
  readonly #bodies: BodyBudget;

  constructor(options: ServeOptions) {
    this.#options = options;
    this.#bodies = new BodyBudget(options.siblings);
  }

  serve(route: Route, handle: UntypedHandler): RequestHandler {
    return async (request, response) => {
      const context = readRequestContext(response);
      context.route = route.id;
      const caller = await this.#authenticate(route, request, response);
      const answer = await duringActivity({ requestId: context.requestId, route: route.id }, async () => {
        // Refused while the service drains; those admitted before delay its end.
        using _waiting = route.waitsForTurn === true ? this.#options.drain.admit() : undefined;
        using room = this.#reserveBody(route, request, caller);
        await room.agree();
        const call = await readCall(route, { request, response, caller, room });
        const answered = await handle(call);
        await this.#record(route, call, answered);
        return answered;
      }).finally(() => this.#options.drain.closeAfter(response));
      if (answer.kind === 'answer') send(route, response, answer);
      context.answered(response.statusCode, this.#options);
    };
  }

  /** Puts on record what the route has done. Who has no key here is an operator. */
  async #record(route: Route, { caller, params, requestId }: UntypedCall, answered: UntypedAnswer): Promise<void> {
    if (route.audit === undefined) return;
    const facts = { act: route.audit, target: findTarget(params, answered), requestId };
    if (caller === undefined) {
      await this.#options.tenants.audit.record({ ...facts, by: { kind: 'operator', via: 'api' }, tenantId: null });
    } else if ('key' in caller) {
      const { audit, tenantId } = caller.scope;
      await audit.record({ ...facts, by: { kind: 'key', keyId: caller.key.id }, tenantId });
    }
  }

  /**
   * Callers without a key share by address, others by tenant. A refusal must not distinguish a known tenant from an
   * unknown one.
   */
  #reserveBody(route: Route, request: Request, caller: AnyCaller | undefined): BodyRoom {
    const peer = caller?.scope.tenantId ?? request.socket.remoteAddress ?? '';
    try {
      return this.#bodies.reserve(peer, bytesToExpect(route.body, request));
    } catch (error) {
      if (route.auth === 'signature' && error instanceof AppError && error.code === 'too_large') refuseSignature(error);
      throw error;
    }
  }

  async #authenticate(route: Route, request: Request, response: Response): Promise<AnyCaller | undefined> {
    switch (route.auth) {
      case 'none':
      case 'signature': {
        return undefined;
      }
      case 'operator': {
        guardOperator(request, this.#options.opsToken);
        return undefined;
      }
      case 'key': {
        const caller = await this.#options.tenants.authenticate(readApiKey(request.headers));
        readRequestContext(response).tenantId = caller.scope.tenantId;
        if (route.uncounted !== true) await this.#countRequest(caller, response);
        requireScope(route, caller.key);
        return caller;
      }
      case 'widget':
      case 'visitor': {
        const caller = await this.#admitPage(request, response);
        return route.auth === 'visitor' ? identifyVisitor(request.headers, caller, Date.now()) : caller;
      }
    }
  }

  /** Checks the origin before all that follows, so that a page that may ask can read why it is refused. */
  async #admitPage(request: Request, response: Response): Promise<WidgetCaller> {
    const caller = await this.#options.tenants.openWidget(readWidgetKey(request));
    readRequestContext(response).tenantId = caller.scope.tenantId;
    admitOrigin(request, response, caller.widget);
    const settings = await caller.scope.settings();
    if (settings.suspended === true) throw new AppError('tenant_suspended');
    await this.#countVisitors({ ...caller, settings });
    await this.#countRequest({ ...caller, settings }, response);
    return caller;
  }

  /** The publishable key is public in the source of a page: its requests never use up the owner's whole quota. */
  async #countVisitors({ scope, settings }: Counted): Promise<void> {
    const limit = requestsPerHour(settings);
    if (limit === undefined) return;
    await takeRequest(this.#options.rateLimits, { name: `${scope.tenantId}:visitors`, limit: Math.ceil(limit / 2), per: 'hour' });
  }

  /** Counted before anything else is looked at: a malformed request spends the allowance too. */
  async #countRequest({ scope, settings }: Counted, response: Response): Promise<void> {
    const limit = requestsPerHour(settings);
    if (limit === undefined) return;
    const report = ({ remaining, resetSeconds }: RateLimitState): void => {
      response.setHeader('RateLimit-Policy', `"hourly";q=${String(limit)};w=3600`);
      response.setHeader('RateLimit', `"hourly";r=${String(remaining)};t=${String(resetSeconds)}`);
    };
    await takeRequest(this.#options.rateLimits, { name: scope.tenantId, limit, per: 'hour', report });
  }
}

function requestsPerHour({ limits: own, plan }: TenantSettings): number | undefined {
  return own?.requestsPerHour ?? (plan === 'preview' ? limits.previewRequestsPerHour : undefined);
}

function requireScope(route: Route, key: KeyRecord): void {
  const held: readonly KeyScope[] = key.scopes;
  if (route.scopes.some((scope) => held.includes(scope))) return;
  throw new AppError('scope_required', `The key needs one of these scopes: ${route.scopes.join(', ')}.`);
}

interface AdmittedRequest extends Pick<UntypedCall, 'request' | 'response' | 'caller'> {
  readonly room: BodyRoom;
}

async function readCall(route: Route, { request, response, caller, room }: AdmittedRequest): Promise<UntypedCall> {
  const params = route.params?.safeParse(joinRest(request.params));
  if (params?.success === false) throw new AppError('not_found', undefined, { cause: params.error });
  const body = await parseBody(route, request, room);
  return {
    request,
    response,
    requestId: readRequestContext(response).requestId,
    caller,
    params: params?.data,
    query: route.query === undefined ? undefined : parseInput(route.query, request.query),
    headers: route.headers === undefined ? undefined : parseInput(route.headers, request.headers),
    body,
  };
}

async function parseBody(route: Route, request: Request, room: BodyRoom): Promise<unknown> {
  // Multipart is read by its handler, file by file, and so is a stream.
  if (route.body === undefined || route.body.kind === 'files') return undefined;
  if (route.body.kind === 'stream') {
    requireStreamType(request, route.body);
    return undefined;
  }
  const reading = readBody(request, route.body, room);
  const body = await (route.auth === 'signature' ? reading.catch(refuseSignature) : reading);
  return route.body.kind === 'json' ? parseInput(route.body.schema, body) : body;
}

/** An unreadable body has no valid signature: a caller learns no more before it shows one. */
function refuseSignature(cause: unknown): never {
  throw new AppError('invalid_signature', undefined, { cause, headers: { Connection: 'close' } });
}

/** Its parameters name what a route has changed; the answer, what it has made. */
function findTarget(params: unknown, { status, json }: UntypedAnswer): string | null {
  const named = typeof params === 'object' && params !== null ? Object.values(params).map(String) : [];
  if (named.length > 0) return named.join(' ');
  return status === 201 ? (z.object({ id: z.string() }).safeParse(json).data?.id ?? null) : null;
}

/** The rest of a path comes as its segments. */
function joinRest(params: Readonly<Record<string, string | string[]>>): Record<string, string> {
  return Object.fromEntries(Object.entries(params).map(([name, value]) => [name, typeof value === 'string' ? value : value.join('/')]));
}

/** Of whole answers that are not small: what is streamed never comes here. */
const compress = compression();

function send(route: Route, response: Response, answer: UntypedAnswer): void {
  response.status(answer.status ?? 200);
  if (answer.headers !== undefined) response.set(answer.headers);
  if (answer.json !== undefined) {
    compress(response.req, response, () => response.json(answer.json));
  } else if (answer.text !== undefined) {
    const type = route.answers[answer.status ?? 200]?.text;
    if (type !== undefined && response.getHeader('content-type') === undefined) response.setHeader('Content-Type', type);
    const text = response.req.method === 'HEAD' ? undefined : answer.text;
    compress(response.req, response, () => response.end(text));
  } else {
    response.end();
  }
}
