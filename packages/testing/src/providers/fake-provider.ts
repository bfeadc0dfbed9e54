import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** One call as the provider saw it. */
export interface ProviderCall {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage['headers'];
  /** The JSON of the body, or the fields of a form; an empty object without one. */
  readonly body: Readonly<Record<string, unknown>>;
}

export interface ProviderReply {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** An object is sent as JSON, with everything escaped that a provider may escape. */
  readonly body: object | string | Uint8Array;
}

/**
 * What goes wrong with the next message that is sent: another answer in place of sending it; `cut` and `hang` after it
 * was sent, so that the sender cannot know of it; `stall` after it was answered: this process, which is the sender's,
 * stands still before the answer is read.
 */
export type SendFault = ProviderReply | 'cut' | 'hang' | 'stall';

/** Longer than a sender of a test waits. */
const STALL_MS = 2000;

/** A channel provider on the loopback interface: it keeps what it was sent, and fails on request of the test. */
export abstract class FakeProvider implements AsyncDisposable {
  /** All calls, refused ones included. */
  readonly calls: ProviderCall[] = [];
  readonly #faults: SendFault[] = [];
  readonly #server: Server;

  constructor() {
    this.#server = createServer((incoming, outgoing) => {
      void this.#answer(incoming, outgoing).catch((error: unknown) => outgoing.destroy(error instanceof Error ? error : undefined));
    });
  }

  async start(): Promise<this> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return this;
  }

  get origin(): string {
    // eslint-disable-next-line typescript/no-unsafe-type-assertion -- a server that listens on TCP has such an address
    return `http://127.0.0.1:${String((this.#server.address() as AddressInfo).port)}`;
  }

  /** The next sends come to this, one fault each. */
  failSends(...faults: SendFault[]): void {
    this.#faults.push(...faults);
  }

  callsTo(end: string): ProviderCall[] {
    return this.calls.filter(({ path }) => path.endsWith(end));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  protected abstract isSend(call: ProviderCall): boolean;

  protected abstract reply(call: ProviderCall): ProviderReply | Promise<ProviderReply>;

  async #answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const call = await readCall(incoming);
    this.calls.push(call);
    const fault = this.isSend(call) ? this.#faults.shift() : undefined;
    const reply = typeof fault === 'object' ? fault : await this.reply(call);
    if (fault === 'cut') outgoing.destroy();
    else if (fault !== 'hang') write(outgoing, reply);
    if (fault === 'stall') Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, STALL_MS);
  }
}

async function readCall(incoming: IncomingMessage): Promise<ProviderCall> {
  const pieces: Buffer[] = [];
  for await (const piece of incoming) pieces.push(Buffer.from(piece));
  const text = Buffer.concat(pieces).toString('utf8');
  const url = new URL(incoming.url ?? '/', 'http://provider');
  const isForm = incoming.headers['content-type']?.startsWith('application/x-www-form-urlencoded') === true;
  const body: unknown = isForm ? Object.fromEntries(new URLSearchParams(text)) : JSON.parse(text === '' ? '{}' : text);
  // eslint-disable-next-line typescript/no-unsafe-type-assertion -- all these APIs take objects
  const fields = body as Record<string, unknown>;
  return { method: incoming.method ?? 'GET', path: url.pathname, query: url.searchParams, headers: incoming.headers, body: fields };
}

function write(outgoing: ServerResponse, { status = 200, headers = {}, body }: ProviderReply): void {
  const isJson = typeof body === 'object' && !(body instanceof Uint8Array);
  outgoing.writeHead(status, { 'content-type': isJson ? 'application/json' : 'text/html', ...headers });
  outgoing.end(isJson ? escapedJson(body) : body);
}

/** JSON as Meta and Telegram write it: what a reader that re-serialises it does not get back. */
export function escapedJson(value: object): string {
  return JSON.stringify(value)
    .replaceAll('/', String.raw`\/`)
    .replaceAll(/[\u0080-\u{10FFFF}]/gu, escapeCodePoint);
}

function escapeCodePoint(character: string): string {
  return Array.from({ length: character.length }, (_, index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`).join('');
}
