import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import { Readiness, routes, type Route } from '@concierge/contract';
import { connectRedis, createLog, redisReady } from '@concierge/runtime';
import { eventually, gate, untilAborted } from '@concierge/testing';
import { keyOf } from '@concierge/turn';
import { z } from 'zod';
import { setUpOnce } from '@concierge/testing/set-up';
import { RawClient } from './raw-client.ts';
import { parseEvents } from './sse.ts';
import { TestGateway } from './test-gateway.ts';

let gateway: TestGateway;

setUpOnce(async (stack) => {
  gateway = stack.use(await TestGateway.start());
});

const chat = { method: 'POST', body: { message: 'x' } };
const waitForever = async ({ signal }: { readonly signal: AbortSignal }): Promise<void> => untilAborted(signal);

describe('operations', () => {
  it('reports that it lives and that it is ready, by dependency', async () => {
    expect(await (await gateway.ask(undefined, '/livez')).json()).toEqual({ status: 'ok', version: '0.1.0', build: 'source' });
    // A worker that stood still with its machine is not heard of for a moment.
    const ready = await eventually(async () => {
      const answer = Readiness.parse(await (await gateway.ask(undefined, '/readyz')).json());
      return answer.status === 'ready' ? answer : undefined;
    });
    expect(ready).toMatchObject({
      checks: { redis: { ok: true }, index: { ok: true }, data: { ok: true }, loop: { ok: true }, workers: { ok: true } },
    });
  });

  it('is not ready, but alive, without Redis, and ready again when it is back', async () => {
    await gateway.redis.kill();
    const statuses = new Set<number>();
    // A look at the disk has two seconds, and a machine that stands still takes them from it.
    const unready = await eventually(async () => {
      const answer = await gateway.ask(undefined, '/readyz');
      statuses.add(answer.status);
      const found = Readiness.parse(await answer.json());
      return found.checks['index']?.ok === true ? found : undefined;
    });
    expect(statuses).toEqual(new Set([503]));
    expect(unready).toMatchObject({
      status: 'unready',
      checks: { redis: { ok: false }, index: { ok: true } },
    });
    expect((await gateway.ask(undefined, '/livez')).status).toBe(200);
    await gateway.redis.start();
    await eventually(async () => (await gateway.ask(undefined, '/readyz')).status === 200);
  });

  it.each([
    ['has an event loop that stalls', { draining: false, stallMs: 6000 }],
    ['drains', { draining: true, stallMs: 0 }],
  ])('is not ready when the only worker %s', async (_state, report) => {
    const redis = connectRedis({ url: gateway.redis.url, role: 'producer', log: createLog({ service: 'test', level: 'silent' }) });
    await using closing = new AsyncDisposableStack();
    closing.defer(() => redis.disconnect());
    await redisReady(redis, 60_000);
    const ready = async (): Promise<Readiness> => Readiness.parse(await (await gateway.ask(undefined, '/readyz')).json());
    const unready = await eventually(async () => {
      const [workerId = ''] = await redis.hkeys(keyOf.workerFacts);
      // The worker reports again within two seconds; that report is true.
      await redis.hset(keyOf.workerFacts, workerId, JSON.stringify(report));
      const answer = await ready();
      return answer.status === 'unready' ? answer : undefined;
    });
    expect(unready.checks).toMatchObject({ redis: { ok: true }, loop: { ok: true }, workers: { ok: false } });
    await eventually(async () => (await ready()).status === 'ready');
  });

  it('counts requests by route and status, and never by path or tenant', async () => {
    const tenant = await gateway.tenant();
    await gateway.ask(tenant.admin, `/api/sessions/${'a'.repeat(32)}`);
    const text = await (await gateway.ask(undefined, '/metrics')).text();
    const counted = text
      .split('\n')
      .filter((line) => line.startsWith('concierge_http_request_duration_seconds_count{') && line.includes('route="getSession"'));
    expect(counted).toEqual([expect.stringMatching(/method="GET".*status="404".*\} 1$/u)]);
    expect(text).toMatch(/^concierge_event_streams_open\{service="gateway"\} 0$/mu);
    expect(text).not.toContain(tenant.id);
  });

  it('hides its figures from a request that comes from elsewhere', async () => {
    const response = await gateway.ask(undefined, '/metrics', { headers: { 'X-Forwarded-For': '203.0.113.7' } });
    expect(response.status).toBe(404);
  });
});

describe('the OpenAPI document', () => {
  it('describes every route, with the scopes, answers and errors it has', async () => {
    const text = await (await gateway.ask(undefined, '/openapi.json')).text();
    const operation = z.looseObject({ operationId: z.string(), responses: z.record(z.string(), z.unknown()) });
    const document = z
      .object({ openapi: z.string(), paths: z.record(z.string(), z.record(z.string(), operation)) })
      .parse(JSON.parse(text));
    expect(document.openapi).toMatch(/^3\.1\./u);
    for (const route of Object.values<Route>(routes)) {
      const found = document.paths[route.path]?.[route.method];
      expect(found?.operationId).toBe(route.id);
      for (const status of Object.keys(route.answers)) expect(Object.keys(found?.responses ?? {})).toContain(status);
    }
    for (const [, reference = ''] of text.matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/gu)) expect(text).toContain(`"${reference}":{`);
  });

  it('is shown by a page that loads nothing from elsewhere', async () => {
    const page = await gateway.ask(undefined, '/docs');
    const html = await page.text();
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'");
    expect(html).not.toMatch(/https?:\/\//u);
    const script = await gateway.ask(undefined, '/docs/scalar.js');
    expect(script.headers.get('content-type')).toBe('text/javascript; charset=utf-8');
    expect((await script.text()).length).toBeGreaterThan(1_000_000);
  });
});

describe('an event stream', () => {
  it('is dropped when its client does not read, and its turn goes on', async () => {
    // Of its own: a second is short for the large answers to other requests, where the machine stands still meanwhile.
    await using strict = await TestGateway.start({ unreadAnswerMs: 1000 });
    const tenant = await strict.tenant();
    const big = 'x'.repeat(64 * 1024);
    const enough = gate();
    strict.script = async ({ writer, signal }) => {
      for (let part = 0; part < 400 && !signal.aborted; part += 1) {
        writer.emit({ type: 'text_delta', data: { delta: big } });
        await writer.flush();
      }
      enough.open();
    };
    const socket = lazyClient(strict, tenant.admin);
    await enough.opened;
    const metrics = await eventually(async () => {
      const text = await (await strict.ask(undefined, '/metrics')).text();
      return /clients_dropped_total\{[^}]*\} 1/u.test(text);
    });
    expect(metrics).toBe(true);
    socket.destroy();
    const turns = await eventually(async () => {
      const text = await (await strict.ask(tenant.read, '/api/turns?status=done')).text();
      return text === '[]' ? undefined : text;
    });
    expect(turns).toContain('"done"');
  });

  it('is refused before a turn is accepted when the key has too many', async () => {
    await using small = await TestGateway.start({ maxStreamsPerKey: 1 });
    const tenant = await small.tenant();
    small.script = waitForever;
    const first = await small.open(tenant.admin, '/api/admin', chat);
    const second = await small.ask(tenant.admin, '/api/admin', chat);
    expect(second.status).toBe(503);
    expect(second.headers.get('retry-after')).toBe('5');
    await first.body?.cancel();
    const turns = z.array(z.unknown()).parse(await (await small.ask(tenant.read, '/api/turns')).json());
    expect(turns).toHaveLength(1);
  });
});

/** Asks for a stream and never reads it. */
function lazyClient({ url }: Pick<TestGateway, 'url'>, key: string): Socket {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port) });
  socket.on('error', () => undefined);
  const body = JSON.stringify({ message: 'x' });
  socket.pause();
  socket.write(
    `POST /api/admin HTTP/1.1\r\nHost: x\r\nX-API-Key: ${key}\r\nContent-Type: application/json\r\nContent-Length: ${String(body.length)}\r\n\r\n${body}`,
  );
  return socket;
}

describe('shutting down', () => {
  it('refuses new turns, lets running ones end in their stream, then closes', async () => {
    await using leaving = await TestGateway.start();
    const tenant = await leaving.tenant();
    const release = gate();
    leaving.script = async ({ writer }) => {
      await release.opened;
      writer.emit({ type: 'text_delta', data: { delta: 'the end' } });
    };
    const running = await leaving.open(tenant.admin, '/api/admin', chat);
    const stopped = leaving.stop(60_000);
    const refused = await leaving.ask(tenant.admin, '/api/admin', chat);
    expect(refused.status).toBe(503);
    expect(refused.headers.get('retry-after')).toBe('2');
    expect(await refused.json()).toMatchObject({ code: 'shutting_down' });
    expect(await (await leaving.ask(undefined, '/readyz')).json()).toMatchObject({ status: 'shutting_down' });
    expect((await leaving.ask(tenant.read, '/api/skills')).status).toBe(200);
    release.open();
    expect(parseEvents(await running.text()).map(({ type }) => type)).toEqual(['session', 'text_delta', 'done']);
    await stopped;
    await expect(leaving.ask(undefined, '/livez')).rejects.toThrow('ECONNREFUSED');
  });

  it('fails readiness first, and serves what still comes until the balancer has had time to notice', async () => {
    // All of that time is waited for, and longer until readiness was refused three times: a machine that stands still
    // takes it from the requests.
    await using leaving = await TestGateway.start({ leaveMs: 8000, leaveAtMostMs: 60_000 });
    const tenant = await leaving.tenant();
    const look = async (): Promise<unknown> => (await leaving.ask(undefined, '/readyz')).json();
    const stopped = leaving.stop(60_000);
    expect(await look()).toMatchObject({ status: 'shutting_down' });
    const answered = await leaving.ask(tenant.admin, '/api/admin', { ...chat, headers: { Accept: 'application/json' } });
    expect(answered.status).toBe(200);
    for (let looks = 1; looks < 3; looks += 1) expect(await look()).toMatchObject({ status: 'shutting_down' });
    await stopped;
    await expect(leaving.ask(undefined, '/livez')).rejects.toThrow('ECONNREFUSED');
  });

  it('closes kept connections with their next answer, and with one that was asked for before', async () => {
    // Kept for longer than the machine stands still between two requests.
    await using leaving = await TestGateway.start({ leaveMs: 3000, keepAliveMs: 120_000 });
    const tenant = await leaving.tenant();
    const release = gate();
    leaving.script = async () => {
      await release.opened;
    };
    using kept = await RawClient.open(leaving);
    using waiting = await RawClient.open(leaving);
    const ask = { 'X-API-Key': tenant.admin, Accept: 'application/json' };
    const body = JSON.stringify(chat.body);
    waiting.announce('/api/admin', body.length, ask);
    waiting.send(body);
    await eventually(async () => (await tenant.scope.inbox.turnIds()).length > 0);
    kept.send('GET /livez HTTP/1.1', 'Host: localhost', '', '');
    await eventually(() => kept.status === 200);
    expect(kept.seen).toMatch(/^connection: keep-alive/imu);
    const stopped = leaving.stop(60_000);
    kept.send('GET /livez HTTP/1.1', 'Host: localhost', '', '');
    release.open();
    await Promise.all([once(kept.socket, 'end'), once(waiting.socket, 'end')]);
    expect(kept.seen.match(/^connection: .*/gimu)).toEqual([expect.stringMatching(/keep-alive/u), expect.stringMatching(/close/u)]);
    expect(waiting.seen).toMatch(/^HTTP\/1\.1 200 [^]*^connection: close/imu);
    await stopped;
  });

  it('asks a client that waits for a JSON reply beyond the grace to go elsewhere', async () => {
    await using leaving = await TestGateway.start();
    const tenant = await leaving.tenant();
    leaving.script = waitForever;
    const waiting = leaving.ask(tenant.admin, '/api/admin', { ...chat, headers: { Accept: 'application/json' } });
    await eventually(async () => (await tenant.scope.inbox.turnIds()).length > 0);
    await leaving.stop(100);
    const response = await waiting;
    expect(response.status).toBe(503);
    expect(response.headers.get('retry-after')).toBe('2');
  });

  it('ends streams that outlast the grace in good order, so that their clients resume elsewhere', async () => {
    await using leaving = await TestGateway.start();
    const tenant = await leaving.tenant();
    leaving.script = waitForever;
    const running = await leaving.open(tenant.admin, '/api/admin', chat);
    await leaving.stop(100);
    expect(parseEvents(await running.text()).map(({ type }) => type)).toEqual(['session']);
  });
});
