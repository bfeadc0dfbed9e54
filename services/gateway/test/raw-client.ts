import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** An ill-behaved client: it sends what the test gives it and never closes by itself. */
export class RawClient implements Disposable {
  readonly socket: Socket;
  #seen = '';

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on('error', () => undefined);
  }

  static async open({ url }: { readonly url: string }): Promise<RawClient> {
    const { hostname, port } = new URL(url);
    const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
    const client = new RawClient(socket);
    socket.on('data', (bytes: Buffer) => (client.#seen += bytes.toString('latin1')));
    await once(socket, 'connect');
    return client;
  }

  /** Everything that was received so far. */
  get seen(): string {
    return this.#seen;
  }

  get status(): number | undefined {
    const [, status] = /^HTTP\/1\.1 (\d{3}) /u.exec(this.#seen) ?? [];
    return status === undefined ? undefined : Number(status);
  }

  send(...lines: readonly string[]): void {
    this.socket.write(lines.join('\r\n'));
  }

  /** The head of a request that announces a body. */
  announce(path: string, bytes: number, headers: Readonly<Record<string, string>> = {}): void {
    const all = { Host: 'localhost', 'Content-Length': String(bytes), 'Content-Type': 'application/json', ...headers };
    this.send(`POST ${path} HTTP/1.1`, ...Object.entries(all).map(([name, value]) => `${name}: ${value}`), '', '');
  }

  [Symbol.dispose](): void {
    this.socket.destroy();
  }
}
