import { connect, type Socket } from 'node:net';

/** What a request brought back. `body` as it came, chunk sizes included: enough to look for markers. */
export interface RawAnswer {
  readonly body: string;
  readonly firstTextMs: number | undefined;
}

const LAST_CHUNK = '\r\n0\r\n\r\n';

/**
 * One kept-alive HTTP/1.1 connection that reads chunked answers and nothing else. Far cheaper than node:http, so that
 * what is measured is not the driver.
 */
export class HttpConnection {
  readonly #port: number;
  readonly #marker: string;
  #socket: Socket | undefined;
  #body = '';
  #startedMs = 0;
  #firstTextMs: number | undefined;
  #settle: PromiseWithResolvers<RawAnswer> | undefined;

  /** `marker`: what the first text is recognised by. */
  constructor(port: number, marker: string) {
    this.#port = port;
    this.#marker = marker;
  }

  /** Sends one whole request. @throws when the connection ends before the answer does */
  async send(request: string): Promise<RawAnswer> {
    this.#body = '';
    this.#firstTextMs = undefined;
    this.#settle = Promise.withResolvers();
    this.#startedMs = performance.now();
    (this.#socket ??= this.#connect()).write(request);
    return this.#settle.promise;
  }

  close(): void {
    this.#socket?.destroy();
    this.#socket = undefined;
  }

  #connect(): Socket {
    const socket = connect({ port: this.#port, host: '127.0.0.1', noDelay: true });
    socket.setEncoding('latin1');
    socket.on('data', (piece: string) => {
      this.#read(piece);
    });
    socket.on('error', () => undefined);
    socket.once('close', () => {
      if (this.#socket === socket) this.#socket = undefined;
      this.#settle?.reject(new Error(`the connection was closed after ${JSON.stringify(this.#body.slice(0, 200))}`));
    });
    return socket;
  }

  #read(piece: string): void {
    this.#body += piece;
    if (this.#firstTextMs === undefined && this.#body.includes(this.#marker)) this.#firstTextMs = performance.now() - this.#startedMs;
    if (this.#isWhole()) this.#settle?.resolve({ body: this.#body, firstTextMs: this.#firstTextMs });
  }

  #isWhole(): boolean {
    if (this.#body.endsWith(LAST_CHUNK)) return true;
    // A refusal: short, and with its length.
    const length = /\r\ncontent-length: (?<bytes>\d+)\r\n/iu.exec(this.#body.slice(0, 2000))?.groups?.['bytes'];
    return length !== undefined && this.#body.length >= this.#body.indexOf('\r\n\r\n') + 4 + Number(length);
  }
}
