import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ServiceParts } from '@concierge/runtime/process';
import { createApp } from './app.ts';
import type { Config } from './config.ts';
import { GatewayProxy } from './gateway-proxy.ts';
import { OwnerSignIn } from './owner-sign-in.ts';
import { servePages } from './pages.ts';

/** Where `build.mjs` puts the pages; the same from `src` and from `dist`. */
const pagesFolder = fileURLToPath(new URL('../dist/web', import.meta.url));

async function close(server: Server, gateway: GatewayProxy, graceMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  gateway.stop();
  const deadline = setTimeout(() => {
    server.closeAllConnections();
  }, graceMs);
  await closed;
  clearTimeout(deadline);
}

/** Answers with the port on which it listens. `folder`: of the built pages; tests bring their own. */
export async function wire(config: Config, { stack, log }: ServiceParts, folder = pagesFolder): Promise<number> {
  const isBuilt = existsSync(join(folder, 'index.html'));
  if (!isBuilt) log.warn('the pages of the console have not been built: run node services/ui/build.mjs');
  const gateway = new GatewayProxy({ gatewayUrl: config.gatewayUrl, log });
  const signIn = new OwnerSignIn({ secret: config.secret, gatewayUrl: config.gatewayUrl });
  // The time-outs of a proxy's own side stay above the gateway's, so that the gateway's answer is the one that is seen.
  const server = createServer(
    { headersTimeout: 15_000, requestTimeout: 120_000, keepAliveTimeout: 65_000 },
    createApp({ pages: servePages(folder, isBuilt), gateway, signIn, opsTokenIsSet: config.opsTokenIsSet }),
  );
  // A connection whose answer ends while the server closes would stay open, idle, until its time-out.
  server.on('request', (_request, response) => {
    response.once('close', () => {
      if (!server.listening) setImmediate(() => server.closeIdleConnections());
    });
  });
  stack.defer(async () => close(server, gateway, stack.graceLeftMs));
  server.listen(config.port, config.host);
  await once(server, 'listening');
  const { port } = readAddress(server);
  log.info({ port, gateway: config.gatewayUrl.origin }, 'console is listening');
  return port;
}

function readAddress(server: Server): AddressInfo {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server has no port');
  return address;
}
