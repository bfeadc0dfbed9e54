import { hash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { Request, Response } from 'express';
import { AppError, limits } from '@concierge/contract';
import { readSenderToken, deriveSessionId, type OpenWidget, type TenantScope, type Tenants } from '@concierge/tenant';
import { bearerToken } from '../http/request-context.ts';

const PREFLIGHT_SECONDS = 600;
const exposed = 'ETag, Retry-After, X-Request-Id';
const allowedHeaders =
  'Authorization, Content-Type, Idempotency-Key, If-None-Match, Last-Event-ID, X-Widget-Key, X-Widget-Token, X-Widget-Visitor';

/** The publishable key of a request; several only when they agree. @throws AppError `missing_key`, `invalid_key` */
export function readWidgetKey({ headers, query }: Pick<Request, 'headers' | 'query'>): string {
  const given = [bearerToken(headers), headers['x-widget-key'], query['key']].filter((key) => key !== undefined);
  const [key, ...others] = given;
  if (key === undefined || key === '') throw new AppError('missing_key', 'A publishable key is required.');
  if (typeof key !== 'string' || others.some((other) => other !== key))
    throw new AppError('invalid_key', 'The request carries two different keys.');
  return key;
}

/** Lets the page read the answer, errors of what follows included. @throws AppError `origin_refused` */
export function admitOrigin(request: Request, response: Response, { origins }: OpenWidget): void {
  response.vary('Origin');
  const { origin } = request.headers;
  if (origin === undefined || !isAllowed(origin, origins))
    throw new AppError('origin_refused', origin === undefined ? 'The request names no origin.' : undefined);
  response.setHeader('Access-Control-Allow-Origin', origin);
  response.setHeader('Access-Control-Expose-Headers', exposed);
}

/**
 * Answers the question that a browser asks before a request from another origin. It carries no header of that request,
 * so the key has to stand in the address; without one that is good, and an origin that its owner allows, the answer
 * allows nothing.
 */
export async function allowPreflight(tenants: Pick<Tenants, 'openWidget'>, request: Request, response: Response): Promise<void> {
  response.vary('Origin');
  const { key } = request.query;
  const { origin } = request.headers;
  if (typeof key !== 'string' || origin === undefined) return;
  const opened = await tenants.openWidget(key).catch((error: unknown) => {
    if (error instanceof AppError && error.code === 'invalid_key') return undefined;
    throw error;
  });
  if (opened === undefined || !isAllowed(origin, opened.widget.origins)) return;
  response.setHeader('Access-Control-Allow-Origin', origin);
  response.setHeader('Access-Control-Allow-Methods', 'GET, POST');
  response.setHeader('Access-Control-Allow-Headers', allowedHeaders);
  response.setHeader('Access-Control-Max-Age', String(PREFLIGHT_SECONDS));
}

/** To the letter, as browsers write it; `http://localhost:*` is every port of the visitor's own machine. */
function isAllowed(origin: string, origins: readonly string[]): boolean {
  return origins.includes(origin) || (origins.includes('http://localhost:*') && /^http:\/\/localhost(?::\d{1,5})?$/u.test(origin));
}

/** A page of an allowed origin that carries the publishable key. */
export interface WidgetCaller {
  readonly scope: TenantScope;
  readonly widget: OpenWidget;
}

/** A visitor of such a page: the one whose conversation it is, and no other. */
export interface VisitorCaller extends WidgetCaller {
  /**
   * `visitor:` and a hash of what the browser keeps, or `user:` and what the tenant's server has signed: the two never
   * collide.
   */
  readonly sender: string;
  readonly sessionId: string;
  /** As the tenant's server calls them. */
  readonly name: string | null;
}

// bounded-expression: a constant, of bounded length
const visitorPattern = new RegExp(
  `^[A-Za-z0-9_-]{${String(limits.widgetVisitorMinCharacters)},${String(limits.widgetVisitorMaxCharacters)}}$`,
  'u',
);

/**
 * Identifies the visitor. A browser keeps a secret of its own, and only its hash is stored: a reader of the tenant's
 * files, or of its lists, cannot continue a visitor's conversation.
 * @throws AppError `invalid_signature` (token), `invalid_request` (visitor)
 */
export function identifyVisitor(headers: IncomingHttpHeaders, { scope, widget }: WidgetCaller, nowMs: number): VisitorCaller {
  const [token, visitor] = [headers['x-widget-token'], headers['x-widget-visitor']];
  if (token !== undefined && visitor !== undefined)
    throw new AppError('invalid_request', 'Either X-Widget-Token or X-Widget-Visitor identifies the visitor, not both.');
  const who = typeof token === 'string' ? signedSender(token, widget, nowMs) : keptSender(visitor, widget);
  return { scope, widget, ...who, sessionId: deriveSessionId('cs', 'web', who.sender) };
}

type Who = Pick<VisitorCaller, 'sender' | 'name'>;

function signedSender(token: string, { secret }: OpenWidget, nowMs: number): Who {
  if (secret === null) throw new AppError('invalid_signature', 'This widget has no secret that a sender token could be signed with.');
  const read = readSenderToken(token, secret, nowMs);
  if (read.status === 'refused') throw new AppError('invalid_signature', read.reason);
  return { sender: `user:${read.claims.sub}`, name: read.claims.name ?? null };
}

function keptSender(visitor: string | string[] | undefined, { requireSenderToken }: OpenWidget): Who {
  if (requireSenderToken) throw new AppError('invalid_signature', 'This widget asks for a sender token.');
  if (typeof visitor !== 'string' || !visitorPattern.test(visitor))
    throw new AppError('invalid_request', 'X-Widget-Visitor must be a random text of 32 to 128 letters, digits, - and _.');
  return { sender: `visitor:${hash('sha256', visitor)}`, name: null };
}
