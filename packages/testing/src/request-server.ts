import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';

export type RequestHandler = (request: Request) => Response | Promise<Response>;

/** A small real server: a function of web requests behind a socket of the loopback interface. */
export async function serveRequests(handler: RequestHandler): Promise<{ readonly url: string } & AsyncDisposable> {
  const server = createServer((incoming, outgoing) => {
    void answer(incoming, handler).then(async (response) => {
      outgoing.writeHead(response.status, Object.fromEntries(response.headers));
      for await (const piece of response.body ?? []) outgoing.write(piece);
      outgoing.end();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  // eslint-disable-next-line typescript/no-unsafe-type-assertion -- a server that listens on TCP has such an address
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${String(port)}/mcp`,
    [Symbol.asyncDispose]: async () => {
      server.close();
      server.closeAllConnections();
      await Promise.resolve();
    },
  };
}

async function answer(incoming: IncomingMessage, handler: RequestHandler): Promise<Response> {
  const headers = new Headers();
  for (const [name, value] of Object.entries(incoming.headers)) if (typeof value === 'string') headers.set(name, value);
  const hasBody = incoming.method === 'POST';
  const pieces: Buffer[] = [];
  if (hasBody) for await (const piece of Readable.from(incoming)) pieces.push(Buffer.from(piece));
  const url = `http://${incoming.headers.host ?? 'localhost'}${incoming.url ?? '/'}`;
  return handler(new Request(url, { method: incoming.method ?? 'GET', headers, ...(hasBody && { body: Buffer.concat(pieces) }) }));
}
