import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer, request as httpRequest, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { ServiceStack } from '@concierge/runtime/process';
import { eventually, freePort, gate, silentLog, temporaryDirectory } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';
import type { Config } from '../src/config.ts';
import { wire } from '../src/wire.ts';

let cleanUp: AsyncDisposableStack;

setUpEach((stack) => {
  cleanUp = stack;
});

async function startGateway(answer: RequestListener): Promise<string> {
  const server: Server = createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanUp.defer(async () => {
    server.closeAllConnections();
    await server[Symbol.asyncDispose]();
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return `http://127.0.0.1:${String(address.port)}`;
}

interface Console {
  readonly url: string;
  readonly port: number;
  readonly stop: () => Promise<void>;
}

async function startConsole(
  gateway: string,
  { pages = true, ...changes }: Partial<Config> & { readonly pages?: boolean } = {},
): Promise<Console> {
  const folder = cleanUp.use(await temporaryDirectory()).path;
  if (pages) {
    await mkdir(join(folder, 'assets'));
    await writeFile(join(folder, 'index.html'), '<title>Concierge</title>');
    for (const name of ['widget-preview.html', 'widget-preview.html.br']) await writeFile(join(folder, name), '<title>Preview</title>');
    await writeFile(join(folder, 'assets/main-abc.js'), 'plain script');
    await writeFile(join(folder, 'assets/main-abc.js.br'), 'small script');
  }
  const config: Config = {
    port: 0,
    host: '127.0.0.1',
    gatewayUrl: new URL(gateway),
    opsTokenIsSet: false,
    secret: 's'.repeat(32),
    logLevel: 'silent',
    prettyLog: false,
    graceMs: 2000,
    ...changes,
  };
  const stack = new ServiceStack();
  cleanUp.defer(async () => stack.stop(2000));
  // Answers that may finish do so on a machine that stands still, too.
  const stop = async (): Promise<void> => stack.stop(60_000);
  const port = await wire(config, { stack, log: silentLog }, folder);
  return { url: `http://127.0.0.1:${String(port)}`, port, stop };
}

const nowhere = 'http://127.0.0.1:9';

describe('the pages', () => {
  it('are served with a policy that lets nothing foreign in', async () => {
    const page = await fetch((await startConsole(nowhere)).url);
    expect(await page.text()).toBe('<title>Concierge</title>');
    expect(page.headers.get('content-security-policy')).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self';/u);
    expect(page.headers.get('x-content-type-options')).toBe('nosniff');
    expect(page.headers.get('cache-control')).toBe('no-cache');
  });

  it('have one that may be framed, by the console alone, and that can send nothing', async () => {
    const { url } = await startConsole(nowhere);
    const policy = (await fetch(`${url}/widget-preview.html`)).headers.get('content-security-policy') ?? '';
    expect(policy.split('; ')).toEqual([
      "default-src 'none'",
      "script-src 'self'",
      'sandbox allow-scripts',
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'self'",
    ]);
    const others = (await fetch(`${url}/turns`)).headers;
    expect([others.get('x-frame-options'), others.get('content-security-policy')]).toEqual([
      'DENY',
      expect.stringContaining("frame-ancestors 'none'"),
    ]);
  });

  it('are served for every address without an extension, and for no other', async () => {
    const { url } = await startConsole(nowhere);
    expect((await fetch(`${url}/turns/t1`)).status).toBe(200);
    const missing = await fetch(`${url}/assets/other.js`);
    expect([missing.status, missing.headers.get('content-type')]).toEqual([404, 'application/problem+json']);
    expect((await fetch(`${url}/assets/..%2f..%2fpackage.json`)).status).toBe(404);
  });

  it('keep hashed assets for ever, compressed where the browser takes it', async () => {
    const { url } = await startConsole(nowhere);
    const asset = `${url}/assets/main-abc.js`;
    const small = await fetch(asset, { headers: { 'accept-encoding': 'br' }, method: 'HEAD' });
    expect(small.headers.get('content-encoding')).toBe('br');
    expect(small.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
    const plain = await fetch(asset, { headers: { 'accept-encoding': 'br;q=0' } });
    expect(await plain.text()).toBe('plain script');
    expect(plain.headers.get('etag')).not.toBe(small.headers.get('etag'));
    const again = await fetch(asset, { headers: { 'accept-encoding': 'identity', 'if-none-match': plain.headers.get('etag') ?? '' } });
    expect(again.status).toBe(304);
  });

  it('refuse to be written to', async () => {
    const refused = await fetch((await startConsole(nowhere)).url, { method: 'POST' });
    expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
  });

  it('explain what to do when they have not been built', async () => {
    const missing = await fetch((await startConsole(nowhere, { pages: false })).url);
    expect(missing.status).toBe(503);
    expect(await missing.json()).toMatchObject({ code: 'overloaded', detail: expect.stringContaining('build.mjs') });
  });
});

describe('what is forwarded', () => {
  it('arrives with its method, address, body and end-to-end headers, and names the caller', async () => {
    const seen: { target: string; headers: IncomingMessage['headers']; body: string }[] = [];
    const gateway = await startGateway((request, response) => {
      void request.toArray().then((parts) => {
        seen.push({ target: `${request.method ?? ''} ${request.url ?? ''}`, headers: request.headers, body: parts.join('') });
        response.writeHead(201, { 'x-request-id': 'r1', 'keep-alive': 'timeout=1', 'set-cookie': ['a=1', 'b=2'] }).end('made');
      });
    });
    const { url } = await startConsole(gateway);
    const answer = await fetch(`${url}/api/admin?busy=queue`, {
      method: 'POST',
      body: '{"message":"hi"}',
      headers: { 'x-api-key': 'ck_live_x', te: 'trailers' },
    });
    expect([answer.status, await answer.text(), answer.headers.get('x-request-id')]).toEqual([201, 'made', 'r1']);
    expect(answer.headers.getSetCookie()).toEqual(['a=1', 'b=2']);
    expect(answer.headers.get('keep-alive')).not.toBe('timeout=1');
    expect(seen).toEqual([expect.objectContaining({ target: 'POST /api/admin?busy=queue', body: '{"message":"hi"}' })]);
    expect(seen[0]?.headers).toMatchObject({ 'x-api-key': 'ck_live_x', 'x-forwarded-for': '127.0.0.1', host: new URL(gateway).host });
    expect(seen[0]?.headers.te).toBeUndefined();
  });

  it('streams events as they come, and ends the request when the browser goes away', async () => {
    const more = gate();
    const left = gate();
    const gateway = await startGateway((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('data: one\n\n');
      void more.opened.then(() => response.write('data: two\n\n'));
      response.once('close', () => left.open());
    });
    const { url } = await startConsole(gateway);
    const leave = new AbortController();
    const answer = await fetch(`${url}/api/turns/t1/events`, { signal: leave.signal });
    const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
    expect((await reader?.read())?.value).toBe('data: one\n\n');
    more.open();
    expect((await reader?.read())?.value).toBe('data: two\n\n');
    leave.abort();
    await left.opened;
  });

  it('is compressed where the browser takes it, but for event streams', async () => {
    const list = JSON.stringify(Array.from({ length: 200 }, (_, id) => ({ id, title: 'A conversation' })));
    const gateway = await startGateway(({ url: address }, response) => {
      const type = address === '/api/sessions' ? 'application/json' : 'text/event-stream';
      response.writeHead(200, { 'content-type': type, 'content-length': String(Buffer.byteLength(list)) }).end(list);
    });
    const { url } = await startConsole(gateway);
    const answers = await Promise.all(
      [{}, { 'accept-encoding': 'identity' }].map(async (headers) => fetch(`${url}/api/sessions`, { headers })),
    );
    expect(answers.map(({ headers }) => [headers.get('content-encoding'), headers.get('vary')])).toEqual([
      [expect.stringMatching(/^(?:br|gzip)$/u), 'Accept-Encoding'],
      [null, 'Accept-Encoding'],
    ]);
    expect(await Promise.all(answers.map(async (answer) => answer.text()))).toEqual([list, list]);
    const stream = await fetch(`${url}/api/turns/t1/events`);
    expect(stream.headers.get('content-encoding')).toBeNull();
    await stream.text();
  });

  it('is seen as cut when the gateway cuts it', async () => {
    const gateway = await startGateway((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('data: one\n\n', () => response.destroy());
    });
    const answer = await fetch(`${(await startConsole(gateway)).url}/api/turns/t1/events`);
    await expect(answer.text()).rejects.toThrow('terminated');
  });

  it('is answered with a problem document when no gateway listens behind', async () => {
    const { url } = await startConsole(`http://127.0.0.1:${String(await freePort())}`);
    const refused = await fetch(`${url}/api/sessions`);
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '2']);
    expect(await refused.json()).toMatchObject({ code: 'overloaded', status: 503 });
    const alive = await fetch(`${url}/livez`);
    expect(alive.status).toBe(200);
    expect(await alive.json()).toEqual({ status: 'ok', version: '0.1.0', build: 'source' });
  });

  it('goes to the gateway alone, whatever host the request names', async () => {
    const asked: string[] = [];
    const gateway = await startGateway((request, response) => {
      asked.push(request.url ?? '');
      response.end('gateway');
    });
    const stranger = await startGateway((_request, response) => response.end('stranger'));
    const { port } = await startConsole(gateway);
    const strangerHost = new URL(stranger).host;
    expect(await rawGet(port, `//${strangerHost}/api/x`)).not.toContain('stranger');
    expect(await rawGet(port, `${stranger}/api/x`)).toMatch(/^HTTP\/1.1 400/u);
    expect(await rawGet(port, '/api/x')).toContain('gateway');
    expect(asked).toEqual(['/api/x']);
  });

  it('cuts event streams and lets other answers finish when the console stops', async () => {
    const asked = gate();
    const finish = gate();
    const gateway = await startGateway((request, response) => {
      if (request.url === '/api/slow') {
        asked.open();
        void finish.opened.then(() => response.end('done'));
        return;
      }
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('data: one\n\n');
    });
    const { url, stop } = await startConsole(gateway);
    const stream = await fetch(`${url}/api/turns/t1/events`);
    const slow = fetch(`${url}/api/slow`);
    await asked.opened;
    const stopped = stop();
    await expect(stream.text()).rejects.toThrow('terminated');
    finish.open();
    expect(await (await slow).text()).toBe('done');
    await stopped;
  });
});

describe('the operations pages', () => {
  async function ask(port: number, { path = '/ops/queues', ...headers }: Readonly<Record<string, string>>): Promise<number> {
    const request = httpRequest({ port, host: '127.0.0.1', path, headers }).end();
    const [answer]: IncomingMessage[] = await once(request, 'response');
    answer?.resume();
    return answer?.statusCode ?? 0;
  }

  it('are forwarded only for requests from this machine, when no token guards them', async () => {
    const { port } = await startConsole(await startGateway((_request, response) => response.end('ops')));
    expect(await ask(port, { host: `localhost:${String(port)}` })).toBe(200);
    expect(await ask(port, { host: 'rebound.example' })).toBe(404);
    expect(await ask(port, { host: 'localhost', 'x-forwarded-for': '203.0.113.9' })).toBe(404);
    for (const path of ['/%6fps/queues', '/api/../ops/queues', '//ops/queues', '/api/..\\ops']) {
      expect(await ask(port, { host: 'rebound.example', path })).toBe(404);
    }
  });

  it('are left to the token where there is one', async () => {
    const gateway = await startGateway((_request, response) => response.writeHead(401).end());
    const { port } = await startConsole(gateway, { opsTokenIsSet: true });
    expect(await ask(port, { host: 'console.example' })).toBe(401);
  });
});

/** A request line exactly as given. */
async function rawGet(port: number, target: string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  let answer = '';
  socket.setEncoding('utf8').on('data', (text: string) => (answer += text));
  socket.write(`GET ${target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
  await eventually(() => socket.readableEnded);
  socket.destroy();
  return answer;
}
