import { createParser } from 'eventsource-parser';
import { Problem } from '@concierge/contract';

export interface ServerSentEvent {
  readonly id: string;
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The parsed body. */
  json(): unknown;
  /** The parsed body, checked to be a problem document. */
  problem(): Problem;
  /** The parsed event stream. */
  events(): ServerSentEvent[];
}

export interface RequestOptions {
  readonly method?: string;
  readonly body?: unknown;
  /** Sent as it is, without a content type of ours. */
  readonly rawBody?: string | Uint8Array<ArrayBuffer> | FormData;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

export function parseEvents(text: string): ServerSentEvent[] {
  const events: ServerSentEvent[] = [];
  const parser = createParser({
    onEvent: ({ id = '', event = '', data }) => {
      events.push({ id, type: event, data: JSON.parse(data) });
    },
  });
  parser.feed(text);
  return events;
}

/**
 * The API with one key, over real HTTP, answers as they come: the cases look at statuses, headers, ids and order, which
 * `@concierge/client` sees to by itself.
 */
export class Client {
  readonly url: string;
  readonly #key: string | null;

  constructor(url: string, key: string | null) {
    this.url = url;
    this.#key = key;
  }

  async request(path: string, options: RequestOptions = {}): Promise<Answer> {
    const response = await this.open(path, options);
    const text = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      text,
      json: () => JSON.parse(text),
      problem: () => Problem.parse(JSON.parse(text)),
      events: () => parseEvents(text),
    };
  }

  /** The response with its body still open. */
  async open(path: string, { method, body, rawBody, headers = {}, signal }: RequestOptions = {}): Promise<Response> {
    const key = this.#key === null ? {} : { 'x-api-key': this.#key };
    const json = body === undefined ? {} : { 'content-type': 'application/json' };
    const content = body === undefined ? rawBody : JSON.stringify(body);
    return await fetch(`${this.url}${path}`, {
      method: method ?? (content === undefined ? 'GET' : 'POST'),
      headers: { ...key, ...json, ...headers },
      ...(content === undefined ? {} : { body: content }),
      ...(signal === undefined ? {} : { signal }),
    });
  }

  async get(path: string, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    return await this.request(path, { headers });
  }

  /** Talks to an agent and waits for the end of the stream. */
  async chat(agent: 'admin' | 'cs', body: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    return await this.request(`/api/${agent}`, { body, headers });
  }

  /** The same with a single JSON reply. */
  async ask(agent: 'admin' | 'cs', body: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    return await this.chat(agent, body, { accept: 'application/json', ...headers });
  }

  async upload(
    files: readonly { readonly name: string; readonly bytes: Uint8Array<ArrayBuffer>; readonly type?: string }[],
    field = 'file',
  ): Promise<Answer> {
    const form = new FormData();
    for (const { name, bytes, type } of files) form.append(field, new Blob([bytes], type === undefined ? {} : { type }), name);
    return await this.request('/api/uploads', { rawBody: form });
  }
}
