import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Rules that would hide, and paint, whatever is not defended against them. */
const ownStyles =
  '* { color: red !important; font-size: 30px !important } body > :not(h1) { display: none !important; opacity: 0 !important }';

/** A customer's site on a separate origin, as strict as a site with the widget can be. */
export class Shop implements AsyncDisposable {
  readonly origin: string;
  readonly #server: Server;

  private constructor(server: Server, origin: string) {
    this.#server = server;
    this.origin = origin;
  }

  /** `snippet` goes into its one page, which a script of `gateway` alone may run in. */
  static async open(gateway: string, snippet: (path: string) => string): Promise<Shop> {
    const policy = [
      "default-src 'none'",
      'img-src data:',
      "style-src 'self'",
      `script-src ${gateway}`,
      `connect-src ${gateway}`,
      "require-trusted-types-for 'script'",
    ].join('; ');
    const server = createServer((request, response) => {
      const path = request.url ?? '/';
      if (path === '/shop.css') {
        response.writeHead(200, { 'Content-Type': 'text/css' }).end(ownStyles);
        return;
      }
      response.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8', 'Content-Security-Policy': policy });
      const head =
        '<title>Shop</title><meta name="viewport" content="width=device-width, initial-scale=1"><link rel="stylesheet" href="/shop.css"><link rel="icon" href="data:,">';
      response.end(`<!doctype html><html lang="en"><head>${head}</head><body><h1>Shop</h1>${snippet(path)}</body></html>`);
    });
    await new Promise<void>((resolve) => {
      server.listen(0, 'localhost', resolve);
    });
    const { port } = server.address() as AddressInfo; // eslint-disable-line typescript/no-unsafe-type-assertion -- it listens on a port
    return new Shop(server, `http://localhost:${String(port)}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => {
      this.#server.close(resolve);
    });
  }
}
