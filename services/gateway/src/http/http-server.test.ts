import { createServer, get, type IncomingMessage, type Server } from 'node:http';
import { describe, expect, it } from '@jest/globals';
import { SharedCounts } from '../processes/shared-counts.ts';
import { Drain } from './http-server.ts';
import { httpDrain, listen, type StopOptions } from './http-server.ts';

const never = new AbortController().signal;
const nothing = { [Symbol.dispose]: (): void => undefined };

function serve(drain: Drain): Server {
  return createServer((request, response) => {
    const refused = request.url === '/readyz' && drain.refuseReadiness();
    response.writeHead(refused ? 503 : 200).end('answered');
  });
}

function stopping(drain: Drain, times: Partial<StopOptions> = {}): StopOptions {
  return { drain, streams: nothing, leaveMs: 0, leaveAtMostMs: 0, orphaned: never, ...times };
}

async function ask(port: number, path: string): Promise<number | undefined> {
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    get({ host: '127.0.0.1', port, path, agent: false }, resolve).on('error', reject);
  });
  answer.resume();
  return answer.statusCode;
}

describe('a server that stops', () => {
  it('answers what waits in the queue of the system, however busy it is', async () => {
    const drain = new Drain(new SharedCounts());
    const server = serve(drain);
    const stop = httpDrain(server, stopping(drain));
    const port = await listen(server, { port: 0, host: '127.0.0.1' });
    // The system has all of them before the process has accepted one.
    const asked = Array.from({ length: 200 }, async () => ask(port, '/'));
    const stopped = stop(60_000);
    expect(new Set(await Promise.all(asked))).toEqual(new Set([200]));
    await stopped;
    await expect(ask(port, '/')).rejects.toThrow('ECONNREFUSED');
  });

  it('takes new work until it has refused readiness three times, where that is asked for', async () => {
    const drain = new Drain(new SharedCounts());
    const server = serve(drain);
    const stop = httpDrain(server, stopping(drain, { leaveMs: 1, leaveAtMostMs: 3_600_000 }));
    const port = await listen(server, { port: 0, host: '127.0.0.1' });
    expect(await ask(port, '/readyz')).toBe(200);
    const stopped = stop(3_600_000);
    for (let refusal = 0; refusal < 2; refusal += 1) expect(await ask(port, '/readyz')).toBe(503);
    expect(await ask(port, '/')).toBe(200);
    drain.admit()[Symbol.dispose]();
    expect(await ask(port, '/readyz')).toBe(503);
    await stopped;
    expect(() => drain.admit()).toThrow('shutting down');
  });

  it('waits for no balancer where readiness is not asked for', async () => {
    const drain = new Drain(new SharedCounts());
    const server = serve(drain);
    const stop = httpDrain(server, stopping(drain, { leaveMs: 1, leaveAtMostMs: 3_600_000 }));
    const port = await listen(server, { port: 0, host: '127.0.0.1' });
    const stopped = stop(3_600_000);
    await stopped;
    await expect(ask(port, '/')).rejects.toThrow('ECONNREFUSED');
  });
});
