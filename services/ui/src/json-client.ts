import { ConciergeError, type ClientRequest } from '@concierge/client';
import type { Route } from '@concierge/contract';
import type { z } from 'zod';

/** What a route answers when it succeeds; never for one that answers with nothing that is JSON. */
export type AnswerOf<R extends Route> = {
  [Status in keyof R['answers']]: R['answers'][Status] extends { readonly json: infer Schema extends z.ZodType } ? z.output<Schema> : never;
}[keyof R['answers']];

/** Bytes that the service reads by itself may be JSON, too. */
type BodyOf<R extends Route> = R extends { readonly body: { readonly schema: infer Schema extends z.ZodType } }
  ? z.input<Schema>
  : R extends { readonly body: { readonly kind: 'raw' } }
    ? object
    : R extends { readonly body: { readonly kind: 'stream' } }
      ? Blob
      : never;
type QueryOf<R extends Route> = R extends { readonly query: infer Schema extends z.ZodType } ? keyof z.output<Schema> : never;

export interface Call<R extends Route> {
  /** Of the route's path, by their names. */
  readonly params?: Readonly<Record<string, string>> | undefined;
  /** What is undefined or empty is left out. */
  readonly query?: Readonly<Partial<Record<QueryOf<R> | 'cursor', string | number | boolean | undefined>>> | undefined;
  readonly body?: BodyOf<R> | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface Listed<Value> {
  readonly value: Value;
  /** Of the page after this one; null on the last one. */
  readonly nextCursor: string | null;
  /** Of all pages, where the service counts them. */
  readonly total: number | null;
}

interface Requester {
  request(path: string, init?: ClientRequest): Promise<Response>;
}

/**
 * Any route of the contract, called by its own definition and read by its own schema: for owners (a client with a key
 * or a cookie) and for operators (their cookie). Every method rejects with a ConciergeError.
 */
export class JsonClient {
  readonly #client: Requester;

  constructor(client: Requester) {
    this.#client = client;
  }

  async call<R extends Route>(route: R, call: Call<R> = {}): Promise<AnswerOf<R>> {
    return (await this.list(route, call)).value;
  }

  /** As `call`, with what the headers say about further pages. */
  async list<R extends Route>(route: R, call: Call<R> = {}): Promise<Listed<AnswerOf<R>>> {
    const { body, headers, signal } = call;
    const sent = body === undefined ? {} : toSent(body);
    const response = await this.#client.request(buildAddress(route, call), {
      method: route.method.toUpperCase(),
      ...sent,
      headers: { ...sent.headers, ...headers },
      ...(signal === undefined ? {} : { signal }),
    });
    const schema = route.answers[response.status]?.json;
    const value: unknown = schema === undefined ? undefined : await readJson(response, schema);
    const total = response.headers.get('x-total-count');
    return {
      // eslint-disable-next-line typescript/no-unsafe-type-assertion -- read by the schema that the type is made of
      value: value as AnswerOf<R>,
      nextCursor: readNextCursor(response.headers.get('link')),
      total: total === null ? null : Number(total),
    };
  }
}

/** A file goes as it is, whatever the browser takes its type for. */
function toSent(body: unknown): { readonly headers?: Readonly<Record<string, string>>; readonly body?: string | Blob } {
  if (body instanceof Blob) return { headers: { 'content-type': 'application/octet-stream' }, body };
  return { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
}

/** The path of a route with its parameters and query filled in. */
export function buildAddress<R extends Route>(route: R, { params = {}, query }: Call<R> = {}): string {
  const path = route.path.replaceAll(/\{([^{}]+)\}/gu, (_all, name: string) => {
    const value = params[name] ?? '';
    // The last parameter of some routes is a path of its own.
    return route.rest === true ? value.split('/').map(encodeURIComponent).join('/') : encodeURIComponent(value);
  });
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries<string | number | boolean | undefined>(query ?? {}))
    if (value !== undefined && value !== '') given.set(name, String(value));
  return given.size === 0 ? path : `${path}?${given.toString()}`;
}

/** @throws ConciergeError unexpected_answer; unreachable, where the answer breaks off */
export async function readJson<Schema extends z.ZodType>(response: Response, schema: Schema): Promise<z.output<Schema>> {
  const text = await response.text().catch((error: unknown) => {
    throw ConciergeError.from(error);
  });
  const parsed = schema.safeParse(parseJson(text));
  if (parsed.success) return parsed.data;
  throw new ConciergeError('The service answered something that this page does not understand. Reload the page.', {
    status: response.status,
    code: 'unexpected_answer',
    cause: parsed.error,
  });
}

/** Undefined for what is no JSON. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The cursor of the page after this one, from the `Link` header (RFC 8288). */
export function readNextCursor(link: string | null): string | null {
  const next = (link ?? '').split(/,\s*(?=<)/u).find((part) => /;\s*rel="?next"?/u.test(part));
  const address = next === undefined ? undefined : /<(?<address>[^<>]*)>/u.exec(next)?.groups?.['address'];
  return address === undefined ? null : new URL(address, 'http://console').searchParams.get('cursor');
}
