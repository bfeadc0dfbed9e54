import { once } from 'node:events';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { expect, it, jest } from '@jest/globals';
import { TestTenants } from '@concierge/testing';
import express from 'express';
import { Drain } from '../http/http-server.ts';
import { listen } from '../http/http-server.ts';
import { GatewayMetrics } from '../metrics.ts';
import { SharedCounts } from '../processes/shared-counts.ts';
import { Replies } from './replies.ts';

it('a stream that opens when the grace is over is ended, too: its turn was accepted by a slow Redis', async () => {
  await using tenants = await TestTenants.start();
  const scope = await tenants.scope();
  const counts = new SharedCounts();
  const drain = new Drain(counts);
  const left = jest.fn();
  const follow = (): (() => void) => left;
  const turns = { follow, fold: async () => Promise.reject(new Error('not asked')), isReadToEnd: async () => Promise.resolve(false) };
  using replies = new Replies({ turns, metrics: new GatewayMetrics(tmpdir()), counts, maxPerKey: 8, drain });
  const app = express().get('/', (_request, response) => {
    replies.stream(response, { scope, turnId: 't', keyId: 'k', after: null });
  });
  const server = createServer(app);
  const port = await listen(server, { port: 0, host: '127.0.0.1' });
  try {
    // The request that is being accepted.
    drain.hold();
    const ended = once(drain.ended, 'abort');
    const drained = drain.run(0);
    await ended;
    const answer = await fetch(`http://127.0.0.1:${String(port)}/`);
    expect(answer.headers.get('content-type')).toContain('text/event-stream');
    await answer.text();
    expect(left).toHaveBeenCalledTimes(1);
    drain.letGo();
    await drained;
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
