import { once } from 'node:events';
import { statfs } from 'node:fs/promises';
import type { Server } from 'node:http';
import { createRequire } from 'node:module';
import type * as PromClient from 'prom-client';
import type { Registry } from 'prom-client';
import { eventLoopStallMs } from '../watchdog/watchdog.ts';
import { Figures } from './open-figure.ts';
import { processCounts } from './process-counts.ts';

const require = createRequire(import.meta.url);

/**
 * Creates a separate registry for each service, with Node's process metrics. Never a tenant or session id as a label.
 */
export function newMetrics(service: string): Registry {
  // On demand: a command has no metrics.
  const library: typeof PromClient = require('prom-client');
  const registry = new library.Registry();
  registry.setDefaultLabels({ service });
  library.collectDefaultMetrics({ register: registry });
  return registry;
}

/** The disk is asked at most this often, however many scrape. */
const DISK_EVERY_MS = 5000;

/** Opens the figures that every service has: its Redis, index and event loop, and the disk of the data directory. */
export function openProcessFigures(
  registry: Registry,
  { dataDir, readStallMs = eventLoopStallMs }: { readonly dataDir: string; readonly readStallMs?: () => number },
): void {
  const figures = new Figures(registry);
  figures.countElsewhere('concierge_redis_errors_total', () => [
    { labels: { kind: 'connection' }, value: processCounts.redisConnection },
    { labels: { kind: 'command' }, value: processCounts.redisCommand },
  ]);
  figures.countElsewhere('concierge_index_errors_total', () => [{ labels: {}, value: processCounts.index }]);
  figures.gauge('concierge_event_loop_stall_seconds', (gauge) => {
    gauge.set(readStallMs() / 1000);
  });
  const free = figures.gauge('concierge_disk_free_bytes', () => measureDisk());
  const size = figures.gauge('concierge_disk_size_bytes');
  let askedMs = -Infinity;
  function measureDisk(): void {
    if (performance.now() - askedMs < DISK_EVERY_MS) return;
    askedMs = performance.now();
    // A scrape does not wait for a file system that hangs: it shows what is known.
    void statfs(dataDir).then(
      ({ bavail, blocks, bsize }) => {
        free.set(bavail * bsize);
        size.set(blocks * bsize);
      },
      () => undefined,
    );
  }
  measureDisk();
}

/**
 * Serves a service's metrics for Prometheus at `/metrics`, and nothing else, for services without another HTTP server.
 * Rejects when the port is taken.
 */
export async function serveMetrics(
  registry: Registry,
  address: { readonly port: number; readonly host: string },
): Promise<AsyncDisposable & { readonly port: number }> {
  // On demand: Node's fetch comes with it, 5 MiB and 80 ms of a processor for a process that has no server.
  const { createServer } = await import('node:http');
  const server = createServer((request, response) => {
    if (request.method !== 'GET' || request.url !== '/metrics') {
      response.writeHead(404).end();
      return;
    }
    registry.metrics().then(
      (text) => response.writeHead(200, { 'content-type': registry.contentType }).end(text),
      () => response.writeHead(500).end(),
    );
  });
  server.listen(address.port, address.host);
  await once(server, 'listening');
  return { port: readPort(server), [Symbol.asyncDispose]: async () => close(server) };
}

function readPort(server: Server): number {
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

async function close(server: Server): Promise<void> {
  const closed = once(server, 'close');
  server.close();
  server.closeAllConnections();
  await closed;
}
