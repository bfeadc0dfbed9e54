import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

type Handler = (request: SeenRequest, response: ServerResponse) => void;

/** A web server on this machine: what a page, a search engine or an attacker answers, and what it was asked. */
export class LocalServer implements AsyncDisposable {
  readonly requests: SeenRequest[] = [];
  readonly #server: Server;
  #handler: Handler;

  constructor(handler: Handler = (_request, response) => response.end('hello')) {
    this.#handler = handler;
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const body = Buffer.concat(chunks).toString();
        const seen = { method: request.method ?? '', path: request.url ?? '', headers: request.headers, body };
        this.requests.push(seen);
        this.#handler(seen, response);
      });
    });
  }

  async listen(host = '127.0.0.1'): Promise<this> {
    this.#server.listen(0, host);
    await once(this.#server, 'listening');
    return this;
  }

  answer(handler: Handler): void {
    this.#handler = handler;
  }

  get port(): number {
    return readAddress(this.#server).port;
  }

  /** As an operator would allow it. */
  get place(): string {
    return `127.0.0.1:${String(this.port)}`;
  }

  url(path = '/'): string {
    return `http://${this.place}${path}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }
}

export function readAddress(server: { address(): AddressInfo | string | null }): AddressInfo {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('not listening');
  return address;
}
