import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createMcpHandler, McpServer as ProtocolServer } from '@modelcontextprotocol/server';
import { gate, serveRequests as serve, type RequestHandler as Handler } from '@concierge/testing';
import { z } from 'zod';
import { McpServers, type McpServer } from '../src/index.ts';
import { startReferenceServer } from './reference-server.ts';

const never = new AbortController().signal;
const fetchNow = async (url: string | URL, init?: RequestInit): Promise<Response> => fetch(url, init);
const explain = (error: unknown): string | undefined => (error instanceof RangeError ? error.message : undefined);

function server(url: string, own: Partial<McpServer> = {}): McpServer {
  return { name: 'crm', url, headers: {}, tools: null, timeoutMs: 60_000, revision: '1', ...own };
}

/** Supports the current revision only, and keeps what it was sent. */
function modern(seen: Headers[] = []): Handler {
  const handler = createMcpHandler(
    () => {
      const own = new ProtocolServer({ name: 'modern', version: '1' });
      own.registerTool(
        'find.contact',
        { description: 'Finds a contact', inputSchema: z.object({ name: z.string() }), annotations: { readOnlyHint: true } },
        ({ name }) => ({ content: [{ type: 'text', text: `found ${name}` }] }),
      );
      own.registerTool('fail', { inputSchema: z.object({}) }, () => ({ content: [{ type: 'text', text: 'no luck' }], isError: true }));
      own.registerTool('picture', { inputSchema: z.object({}) }, () => ({
        content: [{ type: 'image', mimeType: 'image/png', data: 'AAAA' }],
      }));
      return own;
    },
    { legacy: 'reject' },
  );
  return async (request) => {
    seen.push(request.headers);
    return handler.fetch(request);
  };
}

describe('a server of the current revision', () => {
  it('lists its tools under names of ours, and answers calls', async () => {
    const seen: Headers[] = [];
    await using endpoint = await serve(modern(seen));
    const servers = new McpServers({ fetch: fetchNow, explain });
    const attached = server(endpoint.url, { headers: { Authorization: 'Bearer t0ken' } });
    const { protocolVersion, tools } = await servers.tools('acme', attached, never);
    expect(protocolVersion).toBe('2026-07-28');
    expect(tools.map(({ remoteName, isReadOnly }) => [remoteName, isReadOnly])).toEqual([
      ['find.contact', true],
      ['fail', false],
      ['picture', false],
    ]);
    expect(tools[0]?.name).toMatch(/^mcp__crm__find_contact_[0-9a-f]{8}$/u);
    expect(tools[0]).toMatchObject({ description: 'Finds a contact', parameters: { type: 'object', required: ['name'] } });
    const call = async (tool: string, input = {}) => servers.call('acme', attached, { tool, input, signal: never });
    expect(await call('find.contact', { name: 'Ada' })).toEqual({ text: 'found Ada', isError: false });
    expect(await call('fail')).toEqual({ text: 'no luck', isError: true });
    expect(await call('picture')).toEqual({ text: '[image of type image/png, 3 bytes: not shown]', isError: false });
    expect(await call('find.contact', { name: 7 })).toMatchObject({ isError: true });
    expect(seen.every((headers) => headers.get('authorization') === 'Bearer t0ken')).toBe(true);
    await servers.close();
  });

  it('has answered in time when this process stood still before it read that', async () => {
    const handler = modern();
    let hasStoodStill = false;
    await using endpoint = await serve(async (request) => {
      const answer = await handler(request);
      if (!hasStoodStill) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 9000);
      hasStoodStill = true;
      return answer;
    });
    const servers = new McpServers({ fetch: fetchNow, explain });
    expect((await servers.tools('acme', server(endpoint.url), never)).tools).toHaveLength(3);
    await servers.close();
  });

  it('is passed over when it never answers', async () => {
    await using endpoint = await serve(async () => Promise.withResolvers<never>().promise);
    const servers = new McpServers({ fetch: fetchNow, explain });
    await expect(servers.tools('acme', server(endpoint.url), never)).rejects.toThrow('the server did not answer in time');
    await servers.close();
  });

  it('brings only the tools that the tenant allows', async () => {
    await using endpoint = await serve(modern());
    const servers = new McpServers({ fetch: fetchNow, explain });
    const { tools } = await servers.tools('acme', server(endpoint.url, { tools: ['fail', 'nothing'] }), never);
    expect(tools.map(({ remoteName }) => remoteName)).toEqual(['fail']);
    await servers.close();
  });
});

describe('the reference server, of the revision before', () => {
  let reference: Awaited<ReturnType<typeof startReferenceServer>>;
  const servers = new McpServers({ fetch: fetchNow, explain });

  beforeAll(async () => {
    reference = await startReferenceServer();
  });
  afterAll(async () => {
    await servers.close();
    await reference[Symbol.asyncDispose]();
  });

  it('is connected to by initialize, and its tools work', async () => {
    const { protocolVersion, tools } = await servers.tools('acme', server(reference.url), never);
    expect(protocolVersion).toBe('2025-11-25');
    expect(tools.map(({ name }) => name)).toContain('mcp__crm__echo');
    expect(await servers.call('acme', server(reference.url), { tool: 'echo', input: { message: 'hello' }, signal: never })).toEqual({
      text: 'Echo: hello',
      isError: false,
    });
  });

  it('answers for a tool that there is not with an error that can be read', async () => {
    const asked = servers.call('acme', server(reference.url), { tool: 'nothing', input: {}, signal: never });
    await expect(
      asked.then(
        ({ isError, text }) => ({ isError, text }),
        (error: Error) => ({ isError: true, text: error.message }),
      ),
    ).resolves.toMatchObject({ isError: true, text: expect.stringContaining('nothing') });
  });
});

describe('a server that does not work', () => {
  it.each<[string, Handler, string]>([
    ['refuses', () => new Response('no', { status: 401 }), '401'],
    ['is a web page', () => new Response('<html>', { headers: { 'content-type': 'text/html' } }), 'does not speak'],
    ['breaks', () => new Response('boom', { status: 500 }), '500'],
    ['answers no JSON', () => new Response('{', { headers: { 'content-type': 'application/json' } }), 'does not speak'],
  ])('%s: the reason is reported, and it is not asked again at once', async (_case, handler, reason) => {
    let asked = 0;
    await using endpoint = await serve((request) => {
      asked += 1;
      return handler(request);
    });
    let now = 0;
    const servers = new McpServers({ fetch: fetchNow, explain, now: () => now });
    await expect(servers.tools('acme', server(endpoint.url), never)).rejects.toThrow(reason);
    const before = asked;
    await expect(servers.tools('acme', server(endpoint.url), never)).rejects.toThrow(reason);
    expect(asked).toBe(before);
    now += 60_000;
    await expect(servers.tools('acme', server(endpoint.url), never)).rejects.toThrow(reason);
    expect(asked).toBeGreaterThan(before);
    await servers.close();
  });

  it('reports the reason of the address guard', async () => {
    const servers = new McpServers({ fetch: async () => Promise.reject(new RangeError('this address is not public')), explain });
    await expect(servers.tools('acme', server('http://10.0.0.1/mcp'), never)).rejects.toThrow('this address is not public');
  });

  it('ends with the turn that waits for it, and goes on for the others', async () => {
    const answer = gate<Response>();
    await using endpoint = await serve(async () => answer.opened);
    const servers = new McpServers({ fetch: fetchNow, explain });
    const turn = new AbortController();
    const waiting = servers.tools('acme', server(endpoint.url), turn.signal);
    const other = servers.tools('acme', server(endpoint.url), never);
    turn.abort(new Error('cancelled'));
    await expect(waiting).rejects.toThrow('cancelled');
    answer.open(new Response('no', { status: 401 }));
    await expect(other).rejects.toThrow('401');
    await servers.close();
  });

  it('keeps its last list while it is away, and comes back with a new session', async () => {
    const handler = modern();
    let isDown = false;
    await using endpoint = await serve((request) => (isDown ? new Response('gone', { status: 503 }) : handler(request)));
    let now = 0;
    const servers = new McpServers({ fetch: fetchNow, explain, now: () => now });
    const attached = server(endpoint.url);
    const { tools } = await servers.tools('acme', attached, never);
    isDown = true;
    now += 10 * 60_000;
    expect((await servers.tools('acme', attached, never)).tools).toEqual(tools);
    await expect(servers.call('acme', attached, { tool: 'fail', input: {}, signal: never })).rejects.toThrow('503');
    isDown = false;
    expect(await servers.call('acme', attached, { tool: 'fail', input: {}, signal: never })).toEqual({ text: 'no luck', isError: true });
    await servers.close();
  });
});

describe('what a server states about itself', () => {
  it('is cut to what a prompt can bear', async () => {
    await using endpoint = await serve(
      createMcpHandler(() => {
        const own = new ProtocolServer({ name: 'loud', version: '1' });
        for (let number = 0; number < 200; number += 1) {
          own.registerTool(
            `t${String(number)}`,
            { description: 'x'.repeat(10_000), inputSchema: z.object({ a: z.string().describe('y'.repeat(20_000)) }) },
            () => ({
              content: [],
            }),
          );
        }
        return own;
      }).fetch,
    );
    const servers = new McpServers({ fetch: fetchNow, explain });
    const { tools } = await servers.tools('acme', server(endpoint.url), never);
    expect(tools).toHaveLength(128);
    expect(tools[0]?.description).toHaveLength(2000);
    expect(tools[0]?.parameters).toEqual({ type: 'object' });
    await servers.close();
  });
});

describe('a server whose schema of results takes for ever to check', () => {
  /** Answers by hand: the protocol's own server would check its result, and hang, too. */
  const hostile: Handler = async (request) => {
    if (request.method !== 'POST') return new Response(null, { status: 405 });
    const message = z.looseObject({ id: z.union([z.string(), z.number()]).optional(), method: z.string() }).parse(await request.json());
    const results: Readonly<Record<string, unknown>> = {
      initialize: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'hostile', version: '1' } },
      'tools/list': {
        tools: [
          {
            name: 'stop',
            inputSchema: { type: 'object' },
            outputSchema: { type: 'object', properties: { word: { type: 'string', pattern: '^(a+)+$' } } },
          },
        ],
      },
      'tools/call': { content: [{ type: 'text', text: 'the result' }], structuredContent: { word: `${'a'.repeat(60)}!` } },
    };
    if (message.id === undefined) return new Response(null, { status: 202 });
    const result = results[message.method];
    const answer = result === undefined ? { error: { code: -32_601, message: 'Method not found' } } : { result };
    return Response.json({ jsonrpc: '2.0', id: message.id, ...answer });
  };

  it('is not checked: its result is read as text', async () => {
    await using endpoint = await serve(hostile);
    const servers = new McpServers({ fetch: fetchNow, explain });
    const { tools } = await servers.tools('acme', server(endpoint.url), never);
    expect(tools.map(({ remoteName }) => remoteName)).toEqual(['stop']);
    const called = await servers.call('acme', server(endpoint.url), { tool: 'stop', input: {}, signal: never });
    expect(called).toMatchObject({ isError: false, text: expect.stringContaining('the result') });
    await servers.close();
  });
});
