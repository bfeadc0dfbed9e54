import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Below the ports that kernels give to servers and connections that name none: none of these is given to another test
 * before it is listened on.
 */
const FIRST_PORT = 20_000;
const PORTS = 12_000;

/** Each process begins elsewhere. */
let next = (process.pid * 7919) % PORTS;

/** A TCP port of this machine that was free a moment ago, and that this process has not been given before. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < PORTS; tries += 1) {
    const port = FIRST_PORT + next;
    next = (next + 1) % PORTS;
    if (await isFree(port)) return port;
  }
  throw new Error('no port is free');
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  server.listen(port);
  const isListening = await once(server, 'listening').then(
    () => true,
    () => false,
  );
  if (!isListening) return false;
  const closed = once(server, 'close');
  server.close();
  await closed;
  return true;
}
