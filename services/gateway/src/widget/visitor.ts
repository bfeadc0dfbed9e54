import { hash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { AppError, limits } from '@concierge/contract';
import { readSenderToken, deriveSessionId, type OpenWidget, type TenantScope } from '@concierge/tenant';

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
export function visitorOf(headers: IncomingHttpHeaders, { scope, widget }: WidgetCaller, nowMs: number): VisitorCaller {
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
