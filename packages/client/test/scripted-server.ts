import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { encodeServerSentEvent, errorCodes, type ErrorCode, type TurnEvent } from '@concierge/contract';

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

export type Step = (response: ServerResponse) => void;

/**
 * A server over real HTTP that answers each request with the next step of its script, and the last step from then
 * on.
 */
export class ScriptedServer implements AsyncDisposable {
  readonly url: string;
  readonly requests: SeenRequest[] = [];
  readonly #server: Server;

  private constructor(server: Server, url: string) {
    this.#server = server;
    this.url = url;
  }

  static async start(...steps: readonly Step[]): Promise<ScriptedServer> {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    const scripted = new ScriptedServer(server, `http://127.0.0.1:${String(address.port)}`);
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      void scripted.#take(request).then((count) => steps[Math.min(count, steps.length) - 1]?.(response));
    });
    return scripted;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  async #take(request: IncomingMessage): Promise<number> {
    const { method = '', url = '', headers } = request;
    this.requests.push({ method, path: url, headers, body: (await request.toArray()).join('') });
    return this.requests.length;
  }
}

export const session: TurnEvent = { type: 'session', data: { contact_id: 'c', turnId: 't' } };
export const done: TurnEvent = { type: 'done', data: { inputTokens: 1, outputTokens: 1, finishReason: 'stop' } };
export const delta = (text: string): TurnEvent => ({ type: 'text_delta', data: { delta: text } });

/** Events with ids from `first` on, as they go over the wire. */
export function encode(first: number, ...events: readonly TurnEvent[]): string {
  return events.map(({ type, data }, index) => encodeServerSentEvent(type, JSON.stringify(data), String(first + index))).join('');
}

/** Answers with a stream, and then ends it in good order, breaks the connection or leaves it open. */
export function stream(text: string | Uint8Array, then: 'end' | 'break' | 'stay' = 'end'): Step {
  return (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
    response.write(text, () => {
      if (then === 'end') response.end();
      if (then === 'break') response.destroy();
    });
  };
}

export function refuse(code: ErrorCode, headers: Readonly<Record<string, string>> = {}): Step {
  const { status, title } = errorCodes[code];
  const problem = { type: 'about:blank', title, status, detail: title, code, requestId: 'r' };
  return (response) => response.writeHead(status, { 'content-type': 'application/problem+json', ...headers }).end(JSON.stringify(problem));
}

export function answer(status: number, json?: unknown): Step {
  return (response) =>
    json === undefined
      ? response.writeHead(status).end()
      : response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(json));
}

export const hangUp: Step = (response) => response.destroy();
