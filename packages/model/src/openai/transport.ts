import http, { type IncomingMessage } from 'node:http';
import https from 'node:https';
import { urlToHttpOptions } from 'node:url';
import { fellSilent, timedOut, toRefusal, type CallFailure } from './call-failure.ts';
import type { ModelLimits } from './attempts.ts';

/** An error page longer than this is cut. */
const ERROR_BODY_MAX_CHARACTERS = 64 * 1024;
const MAX_IDLE_CONNECTIONS = 256;

/** One path of one provider: where its requests go, and with which headers. */
export interface Endpoint extends http.RequestOptions {
  readonly headers: Readonly<Record<string, string>>;
}

export function openEndpoint(
  { baseUrl, apiKey }: { readonly baseUrl: string; readonly apiKey: string | null },
  path: '/chat/completions' | '/embeddings',
): Endpoint {
  const url = new URL(baseUrl);
  url.pathname = url.pathname.replace(/\/$/u, '') + path;
  const headers = {
    accept: 'application/json',
    'content-type': 'application/json',
    'user-agent': 'Concierge/1.0',
    ...(apiKey !== null && { authorization: `Bearer ${apiKey}` }),
  };
  return { ...urlToHttpOptions(url), method: 'POST', headers };
}

/**
 * Requests over kept-alive node:http connections: a third less CPU per streamed reply than the global `fetch` (README
 * of this package), and a connection that outlives `[DONE]`, where the global one is cut off and opened anew. Redirects
 * are not followed: a key goes nowhere but to the configured address.
 */
export class HttpTransport {
  readonly #plain = new http.Agent({ keepAlive: true, maxFreeSockets: MAX_IDLE_CONNECTIONS, scheduling: 'lifo' });
  readonly #secure = new https.Agent({ keepAlive: true, maxFreeSockets: MAX_IDLE_CONNECTIONS, scheduling: 'lifo' });

  /**
   * Resolves with the body of a success as it comes, whatever its content type. The parts of the request's body are
   * sent one behind the other.
   * @throws APIError the library's, for a refusal; the reason of the signal; what the connection broke with
   */
  async post(endpoint: Endpoint, parts: readonly Buffer[], signal: AbortSignal): Promise<StreamedBody> {
    const message = await this.#send(endpoint, parts, signal);
    const status = message.statusCode ?? 500;
    const body = new StreamedBody(message);
    if (status >= 200 && status < 300) return body;
    throw await toRefusal(status, await body.readAll(ERROR_BODY_MAX_CHARACTERS), toHeaders(message));
  }

  /** Ends every connection, idle or not. */
  close(): void {
    this.#plain.destroy();
    this.#secure.destroy();
  }

  async #send(endpoint: Endpoint, parts: readonly Buffer[], signal: AbortSignal): Promise<IncomingMessage> {
    try {
      return await this.#request(endpoint, parts, signal);
    } catch (error) {
      // A kept-alive connection that the other side closed as we wrote: nothing has been done there, once more on a new
      // one.
      if (error instanceof StaleConnectionError) return this.#request(endpoint, parts, signal);
      throw error;
    }
  }

  #request(endpoint: Endpoint, parts: readonly Buffer[], signal: AbortSignal): Promise<IncomingMessage> {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    signal.throwIfAborted();
    const length = parts.reduce((sum, part) => sum + part.length, 0);
    const options = { ...endpoint, headers: { ...endpoint.headers, 'content-length': length } };
    const request =
      endpoint.protocol === 'https:'
        ? https.request({ ...options, agent: this.#secure }, resolve)
        : http.request({ ...options, agent: this.#plain }, resolve);
    signal.addEventListener('abort', () => request.destroy(toAbortError(signal)), { once: true });
    request.on('error', (error) => reject(request.reusedSocket && isReset(error) ? new StaleConnectionError(error) : error));
    for (const part of parts.slice(0, -1)) request.write(part);
    request.end(parts.at(-1));
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

function toHeaders(message: IncomingMessage): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(message.headers)) {
    if (typeof value === 'string') headers.set(name, value);
  }
  return headers;
}

/** How much may stay unread here before the connection is paused. */
const MAX_UNREAD_CHARACTERS = 1024 * 1024;
/** How long the rest of an answer we no longer need may take before its connection is given up. */
export const DRAIN_MS = 1000;

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
    // Its end may have arrived while this process stood still: timers come before it is read.
    const timer = setTimeout(() => setImmediate(() => this.abandon()), DRAIN_MS);
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

/**
 * calling → waiting (headers came) → speaking (text began) ⇄ preparing (a call began, or may have) → finished (finish
 * reason seen).
 */
type CallPhase = 'calling' | 'waiting' | 'speaking' | 'preparing' | 'finished';

/**
 * Ends one attempt when the caller aborts, when the provider falls silent for too long, or when it all takes too long.
 */
export class CallDeadline {
  readonly #limits: ModelLimits;
  readonly #caller: AbortSignal;
  readonly #controller = new AbortController();
  /** For the request. */
  readonly signal: AbortSignal = this.#controller.signal;
  /** The failure, when it was this deadline that ended the attempt. */
  expired: CallFailure | undefined;
  readonly #overall: NodeJS.Timeout;
  #silence: NodeJS.Timeout;
  #phase: CallPhase = 'calling';
  #signsOfLife = 0;
  #isOver = false;

  constructor(caller: AbortSignal, limits: ModelLimits) {
    this.#caller = caller;
    this.#limits = limits;
    this.#overall = setTimeout(() => this.#expire(timedOut(`no end after ${String(limits.attemptMs)} ms`)), limits.attemptMs);
    this.#silence = this.#watch();
    caller.addEventListener('abort', this.#abort, { once: true });
    if (caller.aborted) this.#abort();
  }

  /** The provider gave a sign of life. */
  heard(phase: CallPhase): void {
    this.#signsOfLife += 1;
    if (phase === this.#phase) {
      this.#silence.refresh();
      return;
    }
    this.#phase = phase;
    clearTimeout(this.#silence);
    this.#silence = this.#watch();
  }

  /** Call it when the attempt is over. */
  clear(): void {
    this.#isOver = true;
    clearTimeout(this.#silence);
    clearTimeout(this.#overall);
    this.#caller.removeEventListener('abort', this.#abort);
  }

  readonly #abort = (): void => this.#controller.abort(this.#caller.reason);

  #watch(): NodeJS.Timeout {
    const { headersMs, firstByteMs, idleMs, afterFinishMs } = this.#limits;
    const patienceMs = {
      calling: Math.min(headersMs, firstByteMs),
      waiting: firstByteMs,
      speaking: idleMs,
      preparing: Math.max(firstByteMs, idleMs),
      finished: afterFinishMs,
    };
    const silenceMs = patienceMs[this.#phase];
    const ofReply = this.#phase === 'preparing';
    const message = `nothing from the provider for ${String(silenceMs)} ms`;
    return setTimeout(() => this.#expireUnlessHeard(fellSilent(message, { ofReply })), silenceMs);
  }

  /** Timers come before what has arrived while this process stood still: that is read first. */
  #expireUnlessHeard(failure: CallFailure): void {
    const heard = this.#signsOfLife;
    setImmediate(() => {
      if (this.#signsOfLife === heard && !this.#isOver) this.#expire(failure);
    });
  }

  #expire(failure: CallFailure): void {
    this.expired = failure;
    this.#controller.abort(failure);
  }
}
