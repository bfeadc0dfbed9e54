import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Outbound, type OutboundFailure } from '@concierge/web';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { createServer, type Socket } from 'node:net';
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { dnsResolver } from '../src/outbound/host-addresses.ts';
import { DnsStub } from './dns-stub.ts';
import { readAddress, LocalServer } from './local-server.ts';

const signal = new AbortController().signal;
let server: LocalServer;
let outbound: Outbound;

beforeEach(async () => {
  server = await new LocalServer().listen();
  outbound = new Outbound({ allow: [server.place] });
});

afterEach(async () => {
  await server[Symbol.asyncDispose]();
});

const failing = (failure: OutboundFailure): unknown => expect.objectContaining({ name: 'OutboundError', failure });
const redirectTo =
  (location: string, status = 302) =>
  (_request: unknown, response: ServerResponse): void => {
    response.writeHead(status, { location }).end();
  };
const decodeText = (bytes: Uint8Array): string => Buffer.from(bytes).toString();

describe('a place that is not public', () => {
  it.each([
    'http://127.0.0.1',
    'http://127.1',
    'http://0x7f000001',
    'http://2130706433',
    'http://017700000001',
    'http://127。0。0。1',
    'http://127.0.0.1.',
    'http://0',
    'http://0.0.0.0',
    'http://[::]',
    'http://[::1]',
    'http://[::ffff:7f00:1]',
    'http://[::ffff:127.0.0.1]',
    'http://[::7f00:1]',
    'http://[64:ff9b::7f00:1]',
    'http://[2002:7f00:1::]',
    'http://localhost',
    'http://LOCALHOST.',
    'http://169.254.169.254',
    'http://10.0.0.1',
    'http://[fd00:ec2::254]',
    'http://example.com\\@evil:80@127.0.0.1',
  ])('is not contacted: %s', async (origin) => {
    const guarded = new Outbound({ resolve: async (host) => Promise.resolve([host === 'localhost' ? '127.0.0.1' : host]) });
    const url = `${origin}:${String(server.port)}/`;
    await expect(guarded.get(url, { signal })).rejects.toMatchObject({ failure: expect.stringMatching(/^(?:not_public|bad_url)$/u) });
    await expect(guarded.fetcher()(url)).rejects.toMatchObject({ failure: expect.stringMatching(/^(?:not_public|bad_url)$/u) });
    expect(server.requests).toEqual([]);
  });

  it('is not found through a public name that points to it, nor through one that points there as well', async () => {
    await using names = await new DnsStub({ 'inside.example': ['127.0.0.1'], 'both.example': ['93.184.215.14', '10.0.0.1'] }).listen();
    const guarded = new Outbound({ resolve: dnsResolver([names.place]) });
    for (const name of ['inside.example', 'both.example']) {
      await expect(guarded.get(`http://${name}:${String(server.port)}/`, { signal })).rejects.toEqual(failing('not_public'));
    }
    expect(names.questions).toContain('inside.example');
    expect(server.requests).toEqual([]);
  });

  it('is refused in the words that a name gets which does not exist', async () => {
    await using names = await new DnsStub({ 'name.example': ['10.1.2.3'] }).listen();
    const refusals = [
      new Outbound({ resolve: dnsResolver([names.place]) }),
      new Outbound({ resolve: async () => Promise.resolve([]) }),
    ].map(async (guarded) => guarded.get('http://name.example/', { signal }).catch(String));
    const [hidden, missing] = await Promise.all(refusals);
    expect(hidden).toBe(missing);
    expect(hidden).not.toContain('10.1.2.3');
  });

  it('is not reached by a redirect', async () => {
    await using inside = await new LocalServer().listen();
    for (const location of [inside.url(), `//[::1]:${String(inside.port)}/`, `http://0x7f.1:${String(inside.port)}/`]) {
      server.answer(redirectTo(location));
      await expect(outbound.get(server.url(), { signal })).rejects.toEqual(failing('not_public'));
    }
    for (const location of [
      'file:///etc/passwd',
      'gopher://127.0.0.1:6379/_x',
      'http://me:secret@example.com/',
      'http://example.com:25/',
    ]) {
      server.answer(redirectTo(location));
      await expect(outbound.get(server.url(), { signal })).rejects.toEqual(failing('bad_url'));
    }
    expect(inside.requests).toEqual([]);
  });

  it('is not reached by another name that resolves to what the operator allowed', async () => {
    const guarded = new Outbound({ allow: [server.place], resolve: async () => Promise.resolve(['127.0.0.1']) });
    await expect(guarded.get(`http://mine.example:${String(server.port)}/`, { signal })).rejects.toEqual(failing('not_public'));
  });
});

describe('a name is looked up', () => {
  it('once for each request, and the connection goes to what was found', async () => {
    const asked: string[] = [];
    const answers = [['127.0.0.1'], ['127.0.0.2'], ['127.0.0.2']];
    const resolve = async (host: string): Promise<readonly string[]> => {
      asked.push(host);
      return Promise.resolve(answers.shift() ?? []);
    };
    const place = `shop.example:${String(server.port)}`;
    const rebound = new Outbound({ allow: [place], resolve });
    expect((await rebound.get(`http://${place}/a`, { signal })).status).toBe(200);
    expect(asked).toEqual(['shop.example']);
    expect(server.requests[0]?.headers.host).toBe(place);
    // The second answer has no listener: a connection or a lookup kept from before would get through.
    await expect(rebound.get(`http://${place}/b`, { signal })).rejects.toEqual(failing('unreachable'));
    expect(asked).toHaveLength(2);
  });

  it('again for each redirect', async () => {
    const answers = [['127.0.0.1'], ['169.254.169.254']];
    const place = `shop.example:${String(server.port)}`;
    const resolve = async (): Promise<readonly string[]> => Promise.resolve(answers.shift() ?? []);
    server.answer(redirectTo('http://other.example:8080/latest/meta-data'));
    await expect(new Outbound({ allow: [place], resolve }).get(`http://${place}/`, { signal })).rejects.toEqual(failing('not_public'));
    expect(answers).toEqual([]);
  });

  it('no longer than the caller waits', async () => {
    const caller = new AbortController();
    const stuck = new Outbound({
      resolve: async () => {
        caller.abort(new Error('enough'));
        return Promise.withResolvers<never>().promise;
      },
    });
    await expect(stuck.get('http://slow.example/', { signal: caller.signal })).rejects.toThrow('enough');
    await expect(
      new Outbound({ resolve: async () => Promise.withResolvers<never>().promise }).get('http://slow.example/', { signal, timeoutMs: 5 }),
    ).rejects.toEqual(failing('timed_out'));
  });
});

describe('redirects', () => {
  it('are followed to the end, which is what the answer is of', async () => {
    server.answer(({ path }, response) => {
      if (path === '/new/page') response.end('here');
      else redirectTo(path === '/old' ? '/new/' : 'page')(undefined, response);
    });
    expect(await outbound.get(server.url('/old'), { signal }).then(({ url, bytes }) => [url, decodeText(bytes)])).toEqual([
      server.url('/new/page'),
      'here',
    ]);
    const response = await outbound.fetcher()(server.url('/old'));
    expect([response.url, response.redirected, await response.text()]).toEqual([server.url('/new/page'), true, 'here']);
  });

  it('end when they go round', async () => {
    server.answer(redirectTo('/again'));
    await expect(outbound.get(server.url(), { signal })).rejects.toEqual(failing('redirect_refused'));
    expect(server.requests).toHaveLength(6);
  });

  it('to another origin carry no credentials, whatever they are called', async () => {
    await using other = await new LocalServer().listen();
    const both = new Outbound({ allow: [server.place, other.place] });
    server.answer(({ path }, response) => redirectTo(path === '/start' ? '/same' : other.url('/other'))(undefined, response));
    const headers = { authorization: 'Bearer secret', cookie: 'a=b', 'x-api-key': 'secret', 'mcp-session-id': 's', accept: 'text/plain' };
    await both.get(server.url('/start'), { headers, signal });
    expect(server.requests[1]?.headers).toMatchObject(headers);
    expect(other.requests[0]?.headers).toMatchObject({ accept: 'text/plain' });
    expect(JSON.stringify(other.requests)).not.toMatch(/secret|a=b|mcp-session/u);
  });

  it('keep method and body where they must, and never take a body to another origin', async () => {
    await using other = await new LocalServer().listen();
    const send = new Outbound({ allow: [server.place, other.place] }).fetcher();
    const post = { method: 'POST', body: '{"a":1}', headers: { 'content-type': 'application/json' } };
    const answers = (status: number) => (request: { path: string }, response: ServerResponse) => {
      if (request.path === '/end') response.end();
      else redirectTo('/end', status)(undefined, response);
    };
    for (const status of [307, 308, 302, 303]) {
      server.answer(answers(status));
      await send(server.url('/start'), post);
    }
    expect(server.requests.filter(({ path }) => path === '/end').map(({ method, body }) => `${method} ${body}`)).toEqual([
      'POST {"a":1}',
      'POST {"a":1}',
      'GET ',
      'GET ',
    ]);
    server.answer(redirectTo(other.url(), 308));
    await expect(send(server.url(), post)).rejects.toEqual(failing('redirect_refused'));
    expect(other.requests).toEqual([]);
  });

  it('are an answer or an error for a caller who wants them so', async () => {
    server.answer(redirectTo('http://10.0.0.1/'));
    const response = await outbound.fetcher()(server.url(), { redirect: 'manual' });
    expect([response.status, response.headers.get('location')]).toEqual([302, 'http://10.0.0.1/']);
    await expect(outbound.fetcher()(server.url(), { redirect: 'error' })).rejects.toEqual(failing('redirect_refused'));
  });
});

describe('a body', () => {
  const text = 'words and more words, '.repeat(2000);

  it.each([
    ['gzip', gzipSync(text)],
    ['x-gzip', gzipSync(text)],
    ['deflate', deflateSync(text)],
    ['br', brotliCompressSync(text)],
    ['zstd', zstdCompressSync(text)],
  ])('in %s is decoded', async (encoding, body) => {
    server.answer((_request, response) => response.writeHead(200, { 'content-encoding': encoding }).end(body));
    expect(decodeText((await outbound.get(server.url(), { signal })).bytes)).toBe(text);
    const response = await outbound.fetcher()(server.url());
    expect(response.headers.has('content-encoding')).toBe(false);
    expect(await response.text()).toBe(text);
  });

  it.each([
    ['gzip', gzipSync(Buffer.alloc(50_000_000))],
    ['deflate', deflateSync(Buffer.alloc(50_000_000))],
    ['br', brotliCompressSync(Buffer.alloc(50_000_000), { params: { 1: 4 } })],
    ['zstd', zstdCompressSync(Buffer.alloc(50_000_000))],
  ])('that unfolds from little %s to much is too large', async (encoding, body) => {
    expect(body.length).toBeLessThan(60_000);
    server.answer((_request, response) => response.writeHead(200, { 'content-encoding': encoding }).end(body));
    await expect(outbound.get(server.url(), { signal, maxBytes: 1_000_000 })).rejects.toEqual(failing('too_large'));
    const response = await outbound.fetcher({ maxBytes: 1_000_000 })(server.url());
    await expect(response.text()).rejects.toEqual(failing('too_large'));
  });

  it('is too large when it never ends, also when it never unfolds', async () => {
    const endless = (chunk: Buffer, headers: Record<string, string>) => (_request: unknown, response: ServerResponse) => {
      response.writeHead(200, headers);
      const more = (): void => {
        while (!response.destroyed && response.write(chunk));
      };
      response.on('drain', more);
      more();
    };
    server.answer(endless(Buffer.alloc(65_536), {}));
    await expect(outbound.get(server.url(), { signal, maxBytes: 1_000_000 })).rejects.toEqual(failing('too_large'));
    server.answer(endless(gzipSync(''), { 'content-encoding': 'gzip' }));
    await expect(outbound.get(server.url(), { signal, maxBytes: 100_000 })).rejects.toEqual(failing('too_large'));
  });

  it('that declares its size, is refused before it is read', async () => {
    server.answer((_request, response) => {
      response.writeHead(200, { 'content-length': '99999999999' });
      response.flushHeaders();
    });
    await expect(outbound.get(server.url(), { signal })).rejects.toEqual(failing('too_large'));
  });

  it('that is broken, cut short or in an unknown encoding is a bad answer', async () => {
    for (const [headers, body] of [
      [{ 'content-encoding': 'gzip' }, 'no gzip at all'],
      [{ 'content-encoding': 'br' }, 'no brotli at all'],
      [{ 'content-encoding': 'zstd' }, 'no zstd at all'],
      [{ 'content-encoding': 'gzip' }, gzipSync(text).subarray(0, 100)],
      [{ 'content-encoding': 'gzip, gzip' }, gzipSync(gzipSync(text))],
      [{ 'content-encoding': 'constructor' }, text],
    ] as const) {
      server.answer((_request, response) => response.writeHead(200, headers).end(body));
      await expect(outbound.get(server.url(), { signal })).rejects.toEqual(failing('bad_answer'));
    }
  });

  it('that trickles ends with the time of the whole', async () => {
    server.answer((_request, response) => void response.writeHead(200).write('a'));
    await expect(outbound.get(server.url(), { signal, timeoutMs: 200 })).rejects.toEqual(failing('timed_out'));
    const text = outbound
      .fetcher({ timeoutMs: 200 })(server.url())
      .then(async (response) => response.text());
    await expect(text).rejects.toEqual(failing('timed_out'));
  });

  it('is read when it arrived while this process stood still', async () => {
    server.answer((_request, response) => {
      response.end('hello');
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2000);
    });
    expect(decodeText((await outbound.get(server.url(), { signal, timeoutMs: 1500 })).bytes)).toBe('hello');
    const response = await outbound.fetcher({ timeoutMs: 1500 })(server.url());
    expect(await response.text()).toBe('hello');
  });

  it('streams while it comes, and stops with the caller', async () => {
    const caller = new AbortController();
    const closed = Promise.withResolvers<void>();
    server.answer((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n');
      response.on('close', closed.resolve);
    });
    const response = await outbound.fetcher()(server.url(), { signal: caller.signal });
    const reader = response.body?.getReader();
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe('data: 1\n\n');
    const next = reader?.read();
    caller.abort(new Error('enough'));
    await expect(next).rejects.toThrow('enough');
    await closed.promise;
  });

  it('that is not read on is given up with its connection', async () => {
    const closed = Promise.withResolvers<void>();
    server.answer((_request, response) => {
      response.writeHead(200).write('a');
      response.on('close', closed.resolve);
    });
    const response = await outbound.fetcher()(server.url());
    await response.body?.cancel();
    await expect(closed.promise).resolves.toBeUndefined();
  });
});

describe('an answer that is not HTTP as it should be', () => {
  /** Answers every connection with these bytes. */
  async function rawServer(answer: string): Promise<AsyncDisposable & { url: string; guarded: Outbound }> {
    const sockets = new Set<Socket>();
    const raw = createServer((socket) => {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.once('data', () => socket.end(answer));
    });
    raw.listen(0, '127.0.0.1');
    await once(raw, 'listening');
    const place = `127.0.0.1:${String(readAddress(raw).port)}`;
    return {
      url: `http://${place}/`,
      guarded: new Outbound({ allow: [place] }),
      [Symbol.asyncDispose]: async () => {
        const closed = once(raw, 'close');
        for (const socket of sockets) socket.destroy();
        raw.close();
        await closed;
      },
    };
  }

  it.each([
    ['a head without end', `HTTP/1.1 200 OK\r\n${'x-filler: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n'.repeat(1000)}\r\n`],
    ['one huge header', `HTTP/1.1 200 OK\r\nx-huge: ${'a'.repeat(100_000)}\r\n\r\n`],
    ['no HTTP', 'SSH-2.0-OpenSSH_9.2p1\r\n'],
    ['nothing', ''],
    ['less than it promised', 'HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nshort'],
    ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 5\r\n\r\nhello'],
    ['a length and chunks', 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n'],
    ['a switch of protocols', 'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'],
    ['a chunk that is none', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nhello\r\n'],
  ])('is a bad answer: %s', async (_what, answer) => {
    await using raw = await rawServer(answer);
    await expect(raw.guarded.get(raw.url, { signal })).rejects.toEqual(failing('bad_answer'));
  });

  it('gives no more than it promised', async () => {
    await using raw = await rawServer('HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello and what was smuggled');
    const got = await raw.guarded.get(raw.url, { signal }).then(
      ({ bytes }) => decodeText(bytes),
      (error: unknown) => error,
    );
    expect(got === 'hello' || (got instanceof Error && 'failure' in got)).toBe(true);
  });

  it('is unreachable without a listener', async () => {
    const { place } = server;
    await server[Symbol.asyncDispose]();
    await expect(outbound.get(`http://${place}/`, { signal })).rejects.toEqual(failing('unreachable'));
    server = await new LocalServer().listen();
  });
});

describe('a request', () => {
  it('cannot control how its connection is used', async () => {
    const headers = {
      Host: 'inside.example',
      'X-Own': 'yes',
      'Proxy-Authorization': 'x',
      Upgrade: 'h2c',
      Expect: '100-continue',
      Connection: 'upgrade',
    };
    await outbound.get(server.url(), { headers, signal });
    const seen = server.requests[0]?.headers ?? {};
    expect(seen).toMatchObject({ host: server.place, 'x-own': 'yes', connection: 'close' });
    expect(Object.keys(seen)).not.toEqual(expect.arrayContaining(['upgrade']));
    expect(seen['proxy-authorization'] ?? seen.expect ?? seen.upgrade).toBeUndefined();
  });

  it('cannot be split by what is in its headers or its address', async () => {
    await expect(outbound.get(server.url(), { headers: { 'x-a': 'b\r\nx-c: d' }, signal })).rejects.toThrow(/invalid/iu);
    await outbound.get(server.url('/a\r\nx-c: d'), { signal });
    expect(server.requests.map(({ path, headers }) => [path, headers['x-c']])).toEqual([['/ax-c:%20d', undefined]]);
  });

  it('goes to listed hosts only where there is a list, by redirects too', async () => {
    server.answer(redirectTo('http://other.example/'));
    await expect(outbound.get(server.url(), { signal, hosts: ['media.example'] })).rejects.toEqual(failing('bad_url'));
    expect(server.requests).toEqual([]);
    await expect(outbound.get(server.url(), { signal, hosts: ['127.0.0.1'] })).rejects.toEqual(failing('bad_url'));
    expect(server.requests).toHaveLength(1);
  });

  it('goes by https only where that is asked, redirects too, but for what the operator allowed', async () => {
    await expect(outbound.get('http://example.com/', { signal, httpsOnly: true })).rejects.toEqual(failing('bad_url'));
    expect((await outbound.get(server.url(), { signal, httpsOnly: true })).status).toBe(200);
    server.answer(redirectTo('http://example.com/'));
    await expect(outbound.get(server.url(), { signal, httpsOnly: true })).rejects.toEqual(failing('bad_url'));
  });

  it('goes to nothing that the operator allowed where only the public is asked for', async () => {
    await expect(outbound.get(server.url(), { signal, publicOnly: true })).rejects.toEqual(failing('not_public'));
    expect(server.requests).toEqual([]);
  });

  it('is what a library makes of it: a Request, a URL, a method without an answer’s body', async () => {
    const send = outbound.fetcher();
    await send(new Request(server.url('/request'), { method: 'PUT', body: 'put' }));
    const head = await send(new URL(server.url('/head')), { method: 'HEAD' });
    server.answer((_request, response) => response.writeHead(204, { 'content-encoding': 'gzip' }).end());
    const empty = await send(server.url('/empty'), { method: 'DELETE' });
    expect(server.requests.map(({ method, path, body }) => [method, path, body])).toEqual([
      ['PUT', '/request', 'put'],
      ['HEAD', '/head', ''],
      ['DELETE', '/empty', ''],
    ]);
    expect([head.status, await head.text(), empty.status, empty.body]).toEqual([200, '', 204, null]);
  });
});
