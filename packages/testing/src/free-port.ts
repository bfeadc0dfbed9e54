import { once } from 'node:events';
import { createServer } from 'node:net';
import { workerNumber } from './config.ts';

/**
 * Below the ports that kernels give to servers and connections that name none: none of these is given to another test
 * before it is listened on.
 */
const FIRST_PORT = 20_000;
/** Of one process. */
const PORTS = 500;
const RANGES = 24;

/**
 * Where the range of ports begins that a process takes from. Those that run test files side by side are numbered in
 * order and have a range each: a port that is free until a server of the test listens, or listens again, is given to no
 * other of them meanwhile.
 */
export function findFirstPort(number: number): number {
  return FIRST_PORT + (number % RANGES) * PORTS;
}

/** By the process that has started them all: another run begins elsewhere. */
const first = findFirstPort(process.ppid + workerNumber);
/** Each process begins elsewhere. */
let next = (process.pid * 7919) % PORTS;

/** A TCP port of this machine that was free a moment ago, and that this process has not been given before. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < PORTS; tries += 1) {
    const port = first + next;
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
