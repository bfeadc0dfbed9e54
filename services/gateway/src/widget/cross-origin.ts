import type { Request, Response } from 'express';
import { AppError } from '@concierge/contract';
import type { OpenWidget, Tenants } from '@concierge/tenant';
import { bearerToken } from '../http/api-key.ts';

const PREFLIGHT_SECONDS = 600;
const exposed = 'ETag, Retry-After, X-Request-Id';
const allowedHeaders =
  'Authorization, Content-Type, Idempotency-Key, If-None-Match, Last-Event-ID, X-Widget-Key, X-Widget-Token, X-Widget-Visitor';

/** The publishable key of a request; several only when they agree. @throws AppError `missing_key`, `invalid_key` */
export function widgetKeyOf({ headers, query }: Pick<Request, 'headers' | 'query'>): string {
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
