import { z } from 'zod';
import type { ErrorCode } from '../errors/error-code.ts';
import type { KeyScope } from '../tenants/key.ts';
import { limits } from '../limits.ts';
import type { AuditAct } from '../values/audit.ts';

/**
 * `key`: an API key. `operator`: the operators' token, or loopback where none is set. `signature`: the channel
 * provider's. `widget`: a publishable key, from a page of an origin that its owner allows. `visitor`: as `widget`, and
 * with a sender token.
 */
export type RouteAuth = 'key' | 'operator' | 'signature' | 'widget' | 'visitor' | 'none';
export type RouteMethod = 'get' | 'post' | 'put' | 'patch' | 'delete';

/**
 * What a request carries. `files`: multipart. `text`: any UTF-8 text, stored as sent. `raw`: bytes, read before
 * anything interprets them. `stream`: bytes of one of these types, read by the handler as they come.
 */
export type RouteBody =
  | {
      readonly kind: 'json';
      readonly schema: z.ZodType;
      readonly types?: readonly string[];
      /** limits.jsonBodyMaxBytes by default. */ readonly maxBytes?: number;
    }
  | { readonly kind: 'files'; readonly schema: z.ZodType }
  | { readonly kind: 'text'; readonly maxBytes: number }
  | { readonly kind: 'raw'; readonly maxBytes: number }
  | { readonly kind: 'stream'; readonly types: readonly string[]; readonly maxBytes: number };

export interface RouteAnswer {
  readonly description: string;
  /** Schema of an application/json body. */
  readonly json?: z.ZodType;
  /** The body is a stream of turn events (text/event-stream). */
  readonly events?: true;
  /** Media type of a body that is neither, or that may come instead of JSON. */
  readonly text?: string;
  /** Headers beyond the ones every answer carries, with their meaning. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** `problem`: application/problem+json (RFC 9457). `openai`: as OpenAI's own clients read them. */
export type ErrorShape = 'problem' | 'openai';

/**
 * How errors look below a path, whether there is a route or not: a client of one protocol is never answered in another.
 */
export function chooseErrorShape(path: string): ErrorShape {
  return path.startsWith('/v1/') ? 'openai' : 'problem';
}

/** One endpoint, declared once: Express, the OpenAPI document and the contract tests all read this object. */
export interface Route {
  /** The OpenAPI `operationId`. */
  readonly id: string;
  readonly method: RouteMethod;
  /** OpenAPI form. With `rest`, the last parameter takes everything that is left, slashes included. */
  readonly path: string;
  readonly rest?: true;
  /** A page that also answers what it asks for below its path: scripts, figures, its own addresses. */
  readonly below?: true;
  readonly tag:
    | 'chat'
    | 'agents'
    | 'turns'
    | 'sessions'
    | 'contacts'
    | 'handoffs'
    | 'skills'
    | 'uploads'
    | 'tenant'
    | 'files'
    | 'keys'
    | 'memory'
    | 'usage'
    | 'cron'
    | 'channels'
    | 'deliveries'
    | 'mcp'
    | 'events'
    | 'openai'
    | 'widget'
    | 'webhooks'
    | 'operations';
  readonly summary: string;
  readonly description?: string;
  readonly auth: RouteAuth;
  /** A key needs one of these. `admin` is always among them; `read` only on GET. */
  readonly scopes: readonly KeyScope[];
  /** Answers for as long as a turn takes, so it is refused while the service shuts down. */
  readonly waitsForTurn?: true;
  /** Does not count against the tenant's requests in an hour. */
  readonly uncounted?: true;
  readonly params?: z.ZodObject;
  readonly query?: z.ZodObject;
  /** Request headers that the route reads, lower-case names. */
  readonly headers?: z.ZodObject;
  readonly body?: RouteBody;
  readonly answers: Readonly<Record<number, RouteAnswer>>;
  /**
   * Goes on record when it was done: in the audit log of the caller's tenant, of an operator's route in that of the
   * deployment.
   */
  readonly audit?: AuditAct;
  /** Codes beyond those that its authentication, body and parameters bring along; see `listErrors`. */
  readonly errors: readonly ErrorCode[];
}

/** Keeps the literal types, so that a handler sees exactly its own parameters and body. */
export function defineRoute<const Definition extends Route>(route: Definition): Definition {
  return route;
}

const codesOfWidget = ['missing_key', 'invalid_key', 'tenant_suspended', 'origin_refused', 'rate_limited', 'overloaded'] as const;
const codesOfAuth = {
  none: [],
  key: ['missing_key', 'invalid_key', 'revoked_key', 'scope_required', 'tenant_suspended', 'rate_limited', 'overloaded'],
  operator: ['invalid_key', 'missing_key', 'not_found'],
  signature: ['invalid_signature'],
  widget: codesOfWidget,
  visitor: [...codesOfWidget, 'invalid_signature', 'invalid_request'],
} as const satisfies Record<RouteAuth, readonly ErrorCode[]>;
const codesOfBody = {
  json: ['invalid_json', 'invalid_request', 'too_large', 'unsupported_media_type'],
  files: ['invalid_request', 'too_large', 'unsupported_media_type'],
  text: ['invalid_request', 'too_large', 'unsupported_media_type'],
  raw: [],
  stream: ['invalid_request', 'too_large', 'unsupported_media_type'],
} as const satisfies Record<RouteBody['kind'], readonly ErrorCode[]>;

/** Every code with which the route can answer. */
export function listErrors(route: Route): readonly ErrorCode[] {
  const codes = new Set<ErrorCode>([...route.errors, ...codesOfAuth[route.auth]]);
  if (route.body !== undefined) for (const code of codesOfBody[route.body.kind]) codes.add(code);
  if (route.query !== undefined || route.headers !== undefined) codes.add('invalid_request');
  if (route.waitsForTurn === true) codes.add('shutting_down');
  codes.add('internal_error');
  return [...codes];
}

/** A whole number in a query string: digits and nothing else, so that `1e1`, `0x10` and `" 5"` are refused. */
export function integerParameter(range: { readonly min: number; readonly max: number; readonly default: number }): z.ZodType<number> {
  const digits = /^(?:0|[1-9][0-9]{0,15})$/u;
  // The default stands inside: z.toJSONSchema drops the one of a preprocessed schema.
  const schema = z.int().min(range.min).max(range.max).default(range.default);
  return z.preprocess((value) => (typeof value === 'string' && digits.test(value) ? Number(value) : value), schema);
}

/** Page size of every list. */
export const limitParameter = integerParameter({ min: 1, max: limits.sessionsListMax, default: limits.sessionsListDefault });

export const cursorParameter = z
  .string()
  .min(1)
  .max(512)
  .optional()
  .meta({ description: 'Opaque; taken from the `Link` header of the page before.' });

/** A flag in a query string. */
export const flagParameter = z.preprocess(
  (value) => (value === 'true' || value === 'false' ? value === 'true' : value),
  z.boolean().default(false),
);

export const pageHeaders = { Link: 'The next page, `rel="next"`; absent on the last one.' } as const;
