import { createParser } from 'eventsource-parser';
import { failureOf } from './failure.ts';
import { readConversation, readLook, readProblem, readReplyEvent, type Look } from './read-json.ts';
import type { ReplyEvent } from './reply-text.ts';
import type { WidgetConversation } from '@concierge/contract';

/** Who asks: one of the two. */
export type Who = { readonly kind: 'visitor'; readonly secret: string } | { readonly kind: 'token'; readonly token: string };

export interface StreamedEvent {
  readonly id: string | null;
  readonly event: ReplyEvent;
}

/** The service, as far as visitors may use it. Nothing here is kept: whoever calls says who asks. */
export class Gateway {
  readonly #base: string;
  readonly #key: string;

  /** `base`: the address of the script, beside which the service answers. */
  constructor(base: string, key: string) {
    this.#base = base;
    this.#key = key;
  }

  async look(): Promise<Look> {
    return readLook(await (await this.#ask('widget/settings', {})).json());
  }

  /** Null: nothing has changed since the answer with this tag. */
  async conversation(
    who: Who,
    knownTag: string | null,
  ): Promise<{ readonly tag: string | null; readonly conversation: WidgetConversation } | null> {
    const headers: Record<string, string> = { ...headersOf(who), ...(knownTag === null ? {} : { 'If-None-Match': knownTag }) };
    const response = await this.#ask('widget/conversation', { headers });
    if (response.status === 304) return null;
    return { tag: response.headers.get('ETag'), conversation: readConversation(await response.json()) };
  }

  /** The same `key` again is the same message, never a second one. */
  async say(who: Who, message: { readonly key: string; readonly text: string }, signal: AbortSignal): Promise<Response> {
    return await this.#ask('widget/messages', {
      method: 'POST',
      headers: { ...headersOf(who), 'Content-Type': 'application/json', 'Idempotency-Key': message.key },
      body: JSON.stringify({ message: message.text }),
      signal,
    });
  }

  async follow(who: Who, place: { readonly turnId: string; readonly after: string | null }, signal: AbortSignal): Promise<Response> {
    const headers: Record<string, string> = { ...headersOf(who), ...(place.after === null ? {} : { 'Last-Event-ID': place.after }) };
    return await this.#ask(`widget/turns/${place.turnId}/events`, { headers, signal });
  }

  async cancel(who: Who, turnId: string): Promise<void> {
    await this.#ask(`widget/turns/${turnId}/cancel`, { method: 'POST', headers: headersOf(who) });
  }

  /** The key stands in the address, for the question that a browser asks beforehand carries nothing else. */
  async #ask(path: string, init: RequestInit): Promise<Response> {
    const url = new URL(path, this.#base);
    url.searchParams.set('key', this.#key);
    const response = await fetch(url, { ...init, mode: 'cors', credentials: 'omit', cache: 'no-store', redirect: 'error' });
    if (response.ok || response.status === 304) return response;
    const problem = readProblem(await response.json().catch(() => null));
    throw failureOf(response.status, problem, response.headers.get('Retry-After'));
  }
}

function headersOf(who: Who): Record<string, string> {
  return who.kind === 'token' ? { 'X-Widget-Token': who.token } : { 'X-Widget-Visitor': who.secret };
}

/** Reads an event stream to its end; `onBytes` is called for everything that arrives, signs of life included. */
export async function readStream(
  body: ReadableStream<Uint8Array>,
  { onEvent, onBytes }: { readonly onEvent: (streamed: StreamedEvent) => void; readonly onBytes: () => void },
): Promise<void> {
  const parser = createParser({
    onEvent: ({ event: type = '', data, id }) => {
      const event = readReplyEvent(type, data);
      if (event !== null) onEvent({ id: id ?? null, event });
    },
  });
  const decoder = new TextDecoder();
  // Not `for await`: Safari's streams cannot be iterated.
  const reader = body.getReader();
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    onBytes();
    parser.feed(decoder.decode(read.value, { stream: true }));
  }
}
