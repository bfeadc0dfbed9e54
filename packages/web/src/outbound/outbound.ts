import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { answerDeadline } from '@concierge/runtime';
import { decodedBody } from './decode-body.ts';
import { OutboundError, toOutboundError } from './outbound-error.ts';
import { readHostPort, readHost, isWebPort, toHostPort, readPort, readOutboundUrl } from './outbound-url.ts';
import { isPublicAddress, dnsResolver, systemResolver, type ResolveHost } from './host-addresses.ts';
import { nextHop, sendHop, type Hop, type VettedEndpoint } from './send-hop.ts';

export interface OutboundOptions {
  /**
   * `host:port`s that may be private, from the operator's configuration and nowhere else. The host is compared with the
   * URL's, not with what it resolves to: another name that points there stays refused.
   */
  readonly allow?: readonly string[];
  /** In place of DNS, for tests: once for each request and each redirect. */
  readonly resolve?: ResolveHost;
}

export interface OutboundPolicy {
  /** Bytes of the body, both as sent and as decoded. */
  readonly maxBytes: number;
  /** From the start until the last byte of the body, redirects included. */
  readonly timeoutMs: number;
  readonly maxRedirects: number;
  /** Addresses that the operator allowed are exempt: they are reached over the operator's own network. */
  readonly httpsOnly: boolean;
  /** As if the operator had allowed nothing. */
  readonly publicOnly: boolean;
  /** When given, no other host is contacted, not by a redirect either. */
  readonly hosts: readonly string[] | undefined;
}

const defaultPolicy: OutboundPolicy = {
  maxBytes: 10 * 1024 * 1024,
  timeoutMs: 30_000,
  maxRedirects: 5,
  httpsOnly: false,
  publicOnly: false,
  hosts: undefined,
};

const REQUEST_BODY_MAX_BYTES = 16 * 1024 * 1024;

/** Like the global `fetch`, so that libraries can be given it. */
export type OutboundFetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>;

export interface OutboundGet extends Partial<OutboundPolicy> {
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

export interface OutboundDocument {
  /** After redirects. */
  readonly url: string;
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Uint8Array;
}

interface Exchange {
  readonly policy: OutboundPolicy;
  readonly redirect: Request['redirect'];
  readonly callerSignal: AbortSignal | undefined;
  readonly deadline: AbortSignal;
  /** Whichever of the two comes first. */
  readonly signal: AbortSignal;
}

/** An answer whose head has come. */
interface Answer {
  readonly hop: Hop;
  readonly message: IncomingMessage;
  readonly isRedirected: boolean;
}

/** The one way to a URL that a tenant, a model or a page wrote: public hosts only, within limits. */
export class Outbound {
  readonly #allowed: ReadonlySet<string>;
  readonly #resolvePublic: ResolveHost;
  readonly #resolveAllowed: ResolveHost;

  /** @throws Error for an `allow` that is no host:port */
  constructor({ allow = [], resolve }: OutboundOptions = {}) {
    this.#allowed = new Set(allow.map((entry) => readHostPort(entry)));
    this.#resolvePublic = resolve ?? dnsResolver();
    this.#resolveAllowed = resolve ?? systemResolver;
  }

  /**
   * A `fetch` within a policy. The body streams; reading it fails with OutboundError at the policy's limits. A body of
   * the request is sent whole. Rejects with OutboundError, or with the reason of the caller's signal.
   */
  fetcher(policy: Partial<OutboundPolicy> = {}): OutboundFetch {
    return async (input, init) => {
      const url = readOutboundUrl(input instanceof Request ? input.url : String(input));
      const request = input instanceof Request ? new Request(input, init) : new Request(url, init);
      const callerSignal = init?.signal ?? (input instanceof Request ? input.signal : undefined);
      const exchange = begin({ ...defaultPolicy, ...policy }, request.redirect, callerSignal);
      const hop: Hop = { url, method: request.method, headers: request.headers, body: await readRequestBody(request) };
      return this.#bounded(exchange, hop, async () => toResponse(await this.#follow(hop, exchange), exchange));
    };
  }

  /** The whole of a document, whatever its status. Rejects as `fetcher` does. */
  async get(text: string, { headers, signal, ...policy }: OutboundGet): Promise<OutboundDocument> {
    const exchange = begin({ ...defaultPolicy, ...policy }, 'follow', signal);
    const first: Hop = { url: readOutboundUrl(text), method: 'GET', headers: new Headers(headers), body: undefined };
    return this.#bounded(exchange, first, async () => {
      const { hop, message } = await this.#follow(first, exchange);
      const chunks: Uint8Array[] = [];
      for await (const chunk of bodyChunks({ hop, message }, exchange)) chunks.push(chunk);
      return { url: hop.url.href, status: message.statusCode ?? 0, headers: receivedHeaders(message), bytes: Buffer.concat(chunks) };
    });
  }

  async #bounded<Result>(exchange: Exchange, { url }: Hop, task: () => Promise<Result>): Promise<Result> {
    try {
      exchange.signal.throwIfAborted();
      return await task();
    } catch (error) {
      throw explained(error, url, exchange);
    }
  }

  async #follow(first: Hop, exchange: Exchange): Promise<Answer> {
    let hop = first;
    for (let redirects = 0; redirects <= exchange.policy.maxRedirects; redirects += 1) {
      const endpoint = await this.#vet(hop.url, exchange);
      const message = await sendHop(hop, endpoint, exchange.signal);
      const next = exchange.redirect === 'manual' ? undefined : nextHop(hop, message);
      if (next === undefined) return { hop, message, isRedirected: redirects > 0 };
      message.destroy();
      if (exchange.redirect === 'error') throw new OutboundError('redirect_refused', `${hop.url.hostname} redirects elsewhere.`);
      hop = next;
    }
    throw new OutboundError('redirect_refused', `${first.url.hostname} redirects more than ${String(exchange.policy.maxRedirects)} times.`);
  }

  /**
   * Checks a URL, the first one and each that a redirect names. Its addresses are looked up here, once.
   */
  async #vet(url: URL, { policy, signal }: Exchange): Promise<VettedEndpoint> {
    if (policy.hosts !== undefined && !policy.hosts.includes(url.hostname)) {
      throw new OutboundError('bad_url', `${url.hostname} is not one of the hosts that are allowed here.`);
    }
    const host = readHost(url);
    if (!policy.publicOnly && this.#allowed.has(toHostPort(url))) {
      return { addresses: await unlessAborted(this.#resolveAllowed(host, signal), signal), isAllowedByOperator: true };
    }
    if (policy.httpsOnly && url.protocol !== 'https:') throw new OutboundError('bad_url', 'Only https: URLs can be opened here.');
    if (!isWebPort(readPort(url))) throw new OutboundError('bad_url', `Port ${String(readPort(url))} is none that pages are served on.`);
    const addresses = await unlessAborted(this.#resolvePublic(host, signal), signal);
    // One text for a name that is not known and for one that is private: a difference would reveal what a network looks
    // like.
    if (addresses.length === 0 || !addresses.every((address) => isPublicAddress(address))) {
      throw new OutboundError('not_public', `${url.hostname} has no public address. Check the spelling; private hosts are never opened.`);
    }
    return { addresses, isAllowedByOperator: false };
  }
}

function begin(policy: OutboundPolicy, redirect: Request['redirect'], callerSignal: AbortSignal | undefined): Exchange {
  const deadline = answerDeadline(policy.timeoutMs);
  const signal = callerSignal === undefined ? deadline : AbortSignal.any([callerSignal, deadline]);
  return { policy, redirect, callerSignal, deadline, signal };
}

async function readRequestBody(request: Request): Promise<Uint8Array | undefined> {
  if (request.body === null) return undefined;
  const bytes = await request.bytes();
  if (bytes.byteLength > REQUEST_BODY_MAX_BYTES) throw new OutboundError('too_large', 'The request is too large to be sent.');
  return bytes;
}

/** Waits no longer than the signal for a resolver that ignores it. */
async function unlessAborted<Result>(task: Promise<Result>, signal: AbortSignal): Promise<Result> {
  signal.throwIfAborted();
  const { promise, reject } = Promise.withResolvers<never>();
  const onAbort = (): void => {
    reject(signal.reason);
  };
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([task, promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

async function* bodyChunks(
  { hop, message }: Pick<Answer, 'hop' | 'message'>,
  exchange: Exchange,
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    const body: Readable & AsyncIterable<Buffer> = decodedBody(message, exchange.policy.maxBytes);
    // A stalled body learns of the end here; destroyed with a reason, it gives the reader that reason.
    const onAbort = (): void => {
      body.destroy(new Error('aborted'));
    };
    exchange.signal.addEventListener('abort', onAbort, { once: true });
    try {
      for await (const chunk of body) yield chunk;
    } finally {
      exchange.signal.removeEventListener('abort', onAbort);
    }
  } catch (error) {
    throw explained(error, hop.url, exchange);
  } finally {
    message.destroy();
  }
}

/** `ReadableStream.from` would leave the connection open when it is cancelled before the first chunk was asked for. */
function bodyStream(answer: Answer, exchange: Exchange): ReadableStream<Uint8Array> {
  const chunks = bodyChunks(answer, exchange);
  return new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        const next = await chunks.next();
        if (next.done === true) controller.close();
        else controller.enqueue(next.value);
      },
      cancel: async () => {
        answer.message.destroy();
        await chunks.return();
      },
    },
    { highWaterMark: 0 },
  );
}

/** Why it ended: the caller's own reason, the deadline, or what went wrong on the way. */
function explained(error: unknown, url: URL, { callerSignal, deadline, policy }: Exchange): unknown {
  if (callerSignal?.aborted === true) return callerSignal.reason;
  if (error instanceof OutboundError) return error;
  if (deadline.aborted) {
    return new OutboundError('timed_out', `${url.hostname} took longer than ${String(policy.timeoutMs / 1000)} seconds.`, { cause: error });
  }
  return toOutboundError(error, url.hostname);
}

const WITHOUT_BODY: ReadonlySet<number> = new Set([204, 205, 304]);

function toResponse(answer: Answer, exchange: Exchange): Response {
  const { hop, message, isRedirected } = answer;
  const status = message.statusCode ?? 0;
  if (status < 200 || status > 599) throw new OutboundError('bad_answer', `${hop.url.hostname} gave the status ${String(status)}.`);
  const hasBody = hop.method !== 'HEAD' && !WITHOUT_BODY.has(status);
  if (!hasBody) message.destroy();
  const body = hasBody ? bodyStream(answer, exchange) : null;
  const response = new Response(body, { status, statusText: message.statusMessage ?? '', headers: receivedHeaders(message) });
  // Facts that the constructor does not accept.
  Object.defineProperties(response, { url: { value: hop.url.href }, redirected: { value: isRedirected } });
  return response;
}

/** As received, but for what was true of the body only before it was decoded. */
function receivedHeaders(message: IncomingMessage): Headers {
  const headers = new Headers();
  for (const [name, values] of Object.entries(message.headersDistinct)) {
    if (name === 'content-encoding' || name === 'content-length') continue;
    for (const value of values ?? []) headers.append(name, value);
  }
  return headers;
}
