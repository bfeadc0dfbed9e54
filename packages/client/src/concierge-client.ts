import type { BusyPolicy, ChatBody, ChatReply, TurnEvent, UploadRef } from '@concierge/contract';
import { ConciergeError } from './concierge-error.ts';
import { hasFields, parseJson, type Shape } from './has-fields.ts';
import { readTurnEvent, type FeedEvent } from './read-event.ts';
import { repeatReading, type RetryOptions } from './retries.ts';
import { Silence } from './silence.ts';
import { readChanges, streamEvents, type StreamOptions, type Streamed, type StreamPosition } from './stream-events.ts';

const EVENT_STREAM = 'text/event-stream';
const REQUEST_TIMEOUT_MS = 30_000;
const UPLOAD_TIMEOUT_MS = 180_000;
/** No turn takes longer. */
const REPLY_TIMEOUT_MS = 30 * 60_000;

const replyShape: Shape<ChatReply> = {
  contact_id: 'string',
  turnId: 'string',
  reply: 'string',
  toolCalls: 'object',
  usage: 'object',
  finishReason: 'string',
};

export interface ClientOptions {
  /** Such as `https://chat.example.com`; in a browser the page's own origin when left out. */
  readonly baseUrl?: string | undefined;
  readonly apiKey?: string | undefined;
  readonly fetch?: typeof globalThis.fetch | undefined;
  /** Called with every answer that is an error, before it is thrown or the request is repeated. */
  readonly onError?: ((error: ConciergeError) => void) | undefined;
}

export interface TurnOptions extends RetryOptions {
  /** Makes the same message the same turn, however often it is sent; a new one for each call unless given. */
  readonly idempotencyKey?: string | undefined;
  /** What becomes of the message while the conversation is busy. */
  readonly busy?: BusyPolicy | undefined;
}

export interface ClientRequest extends RequestInit {
  /** How long nothing may come: until the answer begins, and then from one piece of its body to the next. */
  readonly timeoutMs?: number | undefined;
}

/**
 * Concierge's API with one key. Every method rejects with a ConciergeError, or with the signal's reason when
 * aborted.
 */
export class ConciergeClient {
  readonly #options: ClientOptions;

  constructor(options: ClientOptions) {
    this.#options = options;
  }

  /**
   * Sends a message to an agent and reads its turn to the end; `done` or `error` is the last event. Leaving the loop
   * ends the reading, not the turn.
   */
  async *streamTurn(agent: string, body: ChatBody, options: TurnOptions = {}): AsyncGenerator<Streamed<TurnEvent>, void> {
    const [path, message] = describeMessage({ agent, body, accept: EVENT_STREAM }, options);
    const open = async (position: StreamPosition, signal: AbortSignal): Promise<Response> =>
      position.turnId === null ? this.#openStream(path, { ...message, signal }) : this.#resume(position, signal);
    yield* streamEvents({ open, read: readTurnEvent }, null, options);
  }

  /** Reads a turn that was accepted before, from its start or after an event, to its end. */
  async *followTurn(turnId: string, options: StreamOptions = {}): AsyncGenerator<Streamed<TurnEvent>, void> {
    yield* streamEvents({ open: async (position, signal) => this.#resume(position, signal), read: readTurnEvent }, turnId, options);
  }

  /**
   * Hears what changes of the tenant, over as many connections as it takes; `again` comes first, and whenever changes
   * may have been missed. Ends with the signal, or when the loop is left. For keys with the scope admin or read.
   */
  async *followFeed(options: RetryOptions = {}): AsyncGenerator<FeedEvent, never> {
    const open = async (signal: AbortSignal): Promise<Response> =>
      this.#openStream('/api/feed', { headers: { accept: EVENT_STREAM }, signal });
    return yield* repeatReading(
      () => readChanges(open, options.signal),
      ({ retryable }) => retryable,
      options,
    );
  }

  /**
   * Sends a message and waits for the whole reply. Rejects with the code of the turn's failure when the turn fails.
   */
  async ask(agent: string, body: ChatBody, options: TurnOptions = {}): Promise<ChatReply> {
    const [path, message] = describeMessage({ agent, body, accept: 'application/json' }, options);
    const request = { ...message, signal: options.signal ?? null, timeoutMs: REPLY_TIMEOUT_MS };
    const replies = repeatReading(
      () => this.#readReply(path, request),
      ({ isTransient }) => isTransient,
      options,
    );
    return (await replies.next()).value;
  }

  /** Asks the service to end a turn; its text so far stays. */
  async cancelTurn(turnId: string, signal?: AbortSignal): Promise<void> {
    // It goes out even if the page is left at once.
    await this.request(`/api/turns/${encodeURIComponent(turnId)}/cancel`, { method: 'POST', keepalive: true, signal: signal ?? null });
  }

  /** Stores a file; its `id` goes into `attachments` of a message. */
  async upload(file: File, signal?: AbortSignal): Promise<UploadRef> {
    const form = new FormData();
    form.append('file', file, file.name);
    const request = { method: 'POST', body: form, signal: signal ?? null, timeoutMs: UPLOAD_TIMEOUT_MS };
    const saved = await this.#requestJson('/api/uploads', request);
    const [first]: readonly unknown[] = Array.isArray(saved) ? saved : [];
    if (hasFields<UploadRef>(first, { id: 'string', name: 'string', type: 'string', size: 'number' })) return first;
    throw unexpected('the stored file');
  }

  /**
   * Any other request of the API, such as `/api/sessions?limit=10`. Resolves with an answer of 2xx. Its body may take
   * long; reading it rejects with a `TimeoutError` when nothing comes of it for `timeoutMs`.
   */
  async request(path: string, { timeoutMs = REQUEST_TIMEOUT_MS, signal, ...init }: ClientRequest = {}): Promise<Response> {
    const silence = new Silence(timeoutMs);
    const ended = signal == null ? silence.signal : AbortSignal.any([signal, silence.signal]);
    try {
      return silence.watch(await silence.during(this.#send(path, { ...init, signal: ended })));
    } catch (error) {
      signal?.throwIfAborted();
      throw error;
    }
  }

  async *#readReply(path: string, init: ClientRequest): AsyncGenerator<ChatReply, void> {
    const reply = await this.#requestJson(path, init);
    if (!hasFields<ChatReply>(reply, replyShape)) throw unexpected('a reply');
    yield reply;
  }

  /** Undefined for a body that is no JSON. */
  async #requestJson(path: string, init: ClientRequest): Promise<unknown> {
    return parseJson(await (await this.request(path, init)).text());
  }

  async #resume({ turnId, after }: StreamPosition, signal: AbortSignal): Promise<Response> {
    const headers: Record<string, string> = { accept: EVENT_STREAM, ...(after !== null && { 'last-event-id': after }) };
    return this.#openStream(`/api/turns/${encodeURIComponent(turnId ?? '')}/events`, { headers, signal });
  }

  /** 204: nothing comes after the given event. */
  async #openStream(path: string, init: RequestInit): Promise<Response> {
    const response = await this.#send(path, init);
    if (response.status === 204 || response.headers.get('content-type')?.startsWith(EVENT_STREAM) === true) return response;
    throw unexpected('a stream of events');
  }

  async #send(path: string, init: RequestInit): Promise<Response> {
    const { baseUrl = '', apiKey, onError, fetch = globalThis.fetch } = this.#options;
    const headers = new Headers(init.headers);
    if (apiKey !== undefined) headers.set('x-api-key', apiKey);
    const response = await fetch(`${baseUrl}${path}`, { ...init, headers, cache: 'no-store' }).catch((error: unknown) => {
      throw ConciergeError.from(error);
    });
    if (response.ok) return response;
    const error = await ConciergeError.fromResponse(response);
    onError?.(error);
    throw error;
  }
}

/** The same bytes under the same key, however often they are sent: one turn. */
function describeMessage(
  { agent, body, accept }: { readonly agent: string; readonly body: ChatBody; readonly accept: string },
  { idempotencyKey = randomKey(), busy }: TurnOptions,
): [path: string, init: RequestInit] {
  const path = agent === 'admin' || agent === 'cs' ? `/api/${agent}` : `/api/agents/${encodeURIComponent(agent)}`;
  const headers = { 'content-type': 'application/json', accept, 'idempotency-key': idempotencyKey };
  return [busy === undefined ? path : `${path}?busy=${busy}`, { method: 'POST', headers, body: JSON.stringify(body) }];
}

/** Random hex digits; also on a page that is not served securely, where `crypto.randomUUID` is missing. */
export function randomKey(bytes = 16): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(bytes)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

function unexpected(expected: string): ConciergeError {
  return new ConciergeError(`The service did not answer with ${expected}.`, { status: 200, code: 'unexpected_answer' });
}
