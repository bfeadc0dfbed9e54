import http from 'node:http';
import https from 'node:https';
import OpenAI from 'openai';
import type { ModelLimits } from './attempts.ts';
import type { IncomingMessage } from 'node:http';

/** An error page longer than this is cut. */
const ERROR_BODY_MAX_CHARACTERS = 64 * 1024;
const MAX_IDLE_CONNECTIONS = 256;

/** A success whose body is still coming, in `stream`; `body` is empty. */
export class StreamedResponse extends Response {
  readonly stream: StreamedBody;

  constructor(stream: StreamedBody, init: { status: number; headers: Headers }) {
    super(null, init);
    this.stream = stream;
  }
}

/**
 * A `fetch` for the client library over kept-alive node:http connections: a third less CPU per streamed reply than the
 * global one (README of this package), and a connection that outlives `[DONE]`, where the global one is cut off and
 * opened anew. Redirects are not followed: a key goes nowhere but to the configured address.
 */
export class HttpTransport {
  readonly #plain = new http.Agent({ keepAlive: true, maxFreeSockets: MAX_IDLE_CONNECTIONS, scheduling: 'lifo' });
  readonly #secure = new https.Agent({ keepAlive: true, maxFreeSockets: MAX_IDLE_CONNECTIONS, scheduling: 'lifo' });

  /** Successes are `StreamedResponse`s, whatever their content type; anything else has its body read. */
  readonly fetch = async (input: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    const url = new URL(input instanceof Request ? input.url : input);
    const message = await this.#send(url, init);
    const status = message.statusCode ?? 500;
    const body = new StreamedBody(message);
    // The headers of a success are never read; checking and copying them costs more than it looks.
    if (status >= 200 && status < 300) return new StreamedResponse(body, { status, headers: new Headers() });
    return new Response(await body.readAll(ERROR_BODY_MAX_CHARACTERS), { status, headers: toHeaders(message) });
  };

  /** Ends every connection, idle or not. */
  close(): void {
    this.#plain.destroy();
    this.#secure.destroy();
  }

  async #send(url: URL, init: RequestInit): Promise<http.IncomingMessage> {
    try {
      return await this.#request(url, init);
    } catch (error) {
      // A kept-alive connection that the other side closed as we wrote: nothing has been done there, once more on a new
      // one.
      if (error instanceof StaleConnectionError) return this.#request(url, init);
      throw error;
    }
  }

  #request(url: URL, init: RequestInit): Promise<http.IncomingMessage> {
    const { promise, resolve, reject } = Promise.withResolvers<http.IncomingMessage>();
    const signal = init.signal ?? undefined;
    signal?.throwIfAborted();
    const options = {
      method: init.method ?? 'GET',
      headers: Object.fromEntries(init.headers instanceof Headers ? init.headers : new Headers(init.headers)),
    };
    const request =
      url.protocol === 'https:'
        ? https.request(url, { ...options, agent: this.#secure }, resolve)
        : http.request(url, { ...options, agent: this.#plain }, resolve);
    signal?.addEventListener('abort', () => request.destroy(toAbortError(signal)), { once: true });
    request.on('error', (error) => reject(request.reusedSocket && isReset(error) ? new StaleConnectionError(error) : error));
    request.end(toBodyText(init.body));
    return promise;
  }
}

class StaleConnectionError extends Error {
  constructor(cause: Error) {
    super('the kept-alive connection had been closed', { cause });
  }
}

function isReset(error: Error): boolean {
  return 'code' in error && (error.code === 'ECONNRESET' || error.code === 'EPIPE');
}

function toAbortError(signal: AbortSignal): Error {
  return signal.reason instanceof Error ? signal.reason : new DOMException('The request was aborted', 'AbortError');
}

function toBodyText(body: RequestInit['body']): string | undefined {
  if (body === undefined || body === null) return undefined;
  if (typeof body === 'string') return body;
  throw new TypeError('this transport sends text only');
}

function toHeaders(message: http.IncomingMessage): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(message.headers)) {
    if (typeof value === 'string') headers.set(name, value);
  }
  return headers;
}

/** The client needs a key; the header it would go into is taken out again. */
const NO_KEY = 'none';

interface ClientOptions {
  readonly baseUrl: string;
  readonly apiKey: string | null;
  readonly transport: HttpTransport;
  readonly limits: ModelLimits;
}

/**
 * The library's client for one provider: it builds requests and reads refusals, and nothing is tried again behind our
 * back.
 */
export function openClient({ baseUrl, apiKey, transport, limits }: ClientOptions): OpenAI {
  return new OpenAI({
    apiKey: apiKey ?? NO_KEY,
    ...(apiKey === null ? { defaultHeaders: { Authorization: null } } : {}),
    baseURL: baseUrl,
    // Named, or the client takes them from the environment: another provider's account is none of this one's business.
    organization: null,
    project: null,
    adminAPIKey: null,
    fetch: transport.fetch,
    // Retries are ours: seen in the log, counted, and ended by the caller's signal.
    maxRetries: 0,
    timeout: limits.attemptMs,
    logLevel: 'off',
  });
}

/** How much may stay unread here before the connection is paused. */
const MAX_UNREAD_CHARACTERS = 1024 * 1024;
/** How long the rest of an answer we no longer need may take before its connection is given up. */
const DRAIN_MS = 1000;

/**
 * Text of a response as it comes. One `read` returns everything that has arrived, so that whatever came together is
 * handled together. One reader at a time.
 */
export class StreamedBody {
  readonly #message: IncomingMessage;
  #unread = '';
  #outcome: { ended: true } | { error: Error } | undefined;
  #wake: (() => void) | undefined;

  constructor(message: IncomingMessage) {
    this.#message = message;
    message.setEncoding('utf8');
    message.on('data', (text: string) => this.#arrived(text));
    message.on('end', () => this.#settle({ ended: true }));
    message.on('error', (error) => this.#settle({ error }));
    message.on('close', () => this.#settle({ error: new Error('the connection was closed') }));
  }

  /** Undefined at the end. Rejects when the connection broke, after handing out what came before. */
  async read(): Promise<string | undefined> {
    if (this.#unread === '' && this.#outcome === undefined) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      await promise;
    }
    if (this.#unread !== '') return this.#take();
    if (this.#outcome !== undefined && 'error' in this.#outcome) throw this.#outcome.error;
    return undefined;
  }

  /** The rest as one text, cut at `maxCharacters`. */
  async readAll(maxCharacters: number): Promise<string> {
    let text = '';
    for (let piece = await this.read(); piece !== undefined && text.length < maxCharacters; piece = await this.read()) text += piece;
    this.close();
    return text.slice(0, maxCharacters);
  }

  /** Ends the reading. A connection whose answer ends by itself within a second is kept for the next request. */
  close(): void {
    if (this.#outcome !== undefined) return;
    this.#outcome = { ended: true };
    this.#message.removeAllListeners('data');
    this.#message.resume();
    const timer = setTimeout(() => this.#message.destroy(), DRAIN_MS);
    timer.unref();
    this.#message.once('close', () => clearTimeout(timer));
  }

  /** Ends the reading and stops the other side: the connection is cut. */
  abandon(): void {
    this.#outcome ??= { ended: true };
    if (!this.#message.complete) this.#message.destroy();
  }

  #arrived(text: string): void {
    this.#unread += text;
    if (this.#unread.length > MAX_UNREAD_CHARACTERS) this.#message.pause();
    this.#notify();
  }

  #take(): string {
    const text = this.#unread;
    this.#unread = '';
    if (this.#message.isPaused()) this.#message.resume();
    return text;
  }

  #settle(outcome: { ended: true } | { error: Error }): void {
    this.#outcome ??= outcome;
    this.#notify();
  }

  #notify(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }
}
