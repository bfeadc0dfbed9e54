import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { eventually } from './eventually.ts';

export interface ReceivedWebhook {
  readonly path: string;
  /** Headers that came once; names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** The unparsed body. */
  readonly body: string;
}

/** `hang`: it never answers. `cut`: it closes the connection. */
export type WebhookAnswer = { readonly status: number; readonly headers?: Readonly<Record<string, string>> } | 'hang' | 'cut';

/** A tenant's own system: takes webhooks over real HTTP, keeps what came, and fails on request of the test. */
export class WebhookReceiver implements AsyncDisposable {
  readonly received: ReceivedWebhook[] = [];
  answer: (webhook: ReceivedWebhook) => WebhookAnswer = () => ({ status: 204 });
  /** Requests that have had no answer yet: now, and at most. */
  open = 0;
  mostOpen = 0;
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => {
      // A sender that gives up before its body is there has sent nothing.
      void this.#take(request, response).catch(() => response.destroy());
    });
  }

  static async start(): Promise<WebhookReceiver> {
    const receiver = new WebhookReceiver();
    receiver.#server.listen(0, '127.0.0.1');
    await once(receiver.#server, 'listening');
    return receiver;
  }

  /** `host:port`, as an operator would allow it. */
  get place(): string {
    // eslint-disable-next-line typescript/no-unsafe-type-assertion -- a server that listens on TCP has such an address
    return `127.0.0.1:${String((this.#server.address() as AddressInfo).port)}`;
  }

  url(path = '/hook'): string {
    return `http://${this.place}${path}`;
  }

  /** Waits until so many have come. */
  async until(count: number): Promise<readonly ReceivedWebhook[]> {
    return await eventually(() => (this.received.length >= count ? this.received : undefined), { timeoutMs: 60_000 });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, 'close');
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.open += 1;
    this.mostOpen = Math.max(this.mostOpen, this.open);
    response.once('close', () => {
      this.open -= 1;
    });
    const body = (await buffer(request)).toString();
    const headers = Object.fromEntries(
      Object.entries(request.headers).flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : [])),
    );
    const webhook = { path: request.url ?? '', headers, body };
    this.received.push(webhook);
    const answer = this.answer(webhook);
    if (answer === 'hang') return;
    if (answer === 'cut') response.destroy();
    else response.writeHead(answer.status, answer.headers).end();
  }
}
