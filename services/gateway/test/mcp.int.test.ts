import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { McpServerTest, McpServerView } from '@concierge/contract';
import { eventually, serveRequests } from '@concierge/testing';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { sayItBack } from './scripted-turns.ts';
import { TestGateway, type TestTenant } from './test-gateway.ts';

let gateway: TestGateway;
let tenant: TestTenant;
let crm: Awaited<ReturnType<typeof serveRequests>>;

beforeAll(async () => {
  const handler = createMcpHandler(() => {
    const server = new McpServer({ name: 'crm', version: '1' });
    server.registerTool('find', { description: 'Finds an order', inputSchema: z.object({ order: z.string() }) }, () => ({ content: [] }));
    return server;
  });
  crm = await serveRequests(handler.fetch);
  gateway = await TestGateway.start({ outboundAllow: [new URL(crm.url).host] });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await crm[Symbol.asyncDispose]();
});
beforeEach(async () => {
  gateway.script = sayItBack;
  tenant = await gateway.tenant();
});

describe('/api/mcp', () => {
  const put = async (name: string, body: object, key = tenant.admin): Promise<Response> =>
    gateway.ask(key, `/api/mcp/${name}`, { method: 'PUT', body });

  it('attaches, shows, changes and detaches servers; values of headers never come back', async () => {
    const created = await put('crm', { url: crm.url, headers: { Authorization: 'Bearer very-secret' } });
    expect(created.status).toBe(201);
    const view = McpServerView.parse(await created.json());
    expect(view).toMatchObject({ name: 'crm', headers: ['Authorization'], agents: ['admin'], enabled: true });
    expect((await put('crm', { url: crm.url, headers: { Authorization: null }, agents: ['admin', 'cs'] })).status).toBe(200);
    const listed = await gateway.ask(tenant.read, '/api/mcp');
    const text = await listed.text();
    expect(text).toContain('"agents":["admin","cs"]');
    expect(text).not.toContain('very-secret');
    expect((await gateway.ask(tenant.admin, '/api/mcp/crm', { method: 'DELETE' })).status).toBe(204);
    expect((await gateway.ask(tenant.admin, '/api/mcp/crm')).status).toBe(404);
  });

  it('asks a server for its tools on request, and reports why when it cannot', async () => {
    await put('crm', { url: crm.url });
    // It has some seconds to answer, which a machine that stands still takes from it.
    const tested = await eventually(async () => {
      const found = McpServerTest.parse(await (await gateway.ask(tenant.admin, '/api/mcp/crm/test', { method: 'POST' })).json());
      return found.ok ? found : undefined;
    });
    expect(tested).toEqual({
      ok: true,
      protocolVersion: '2026-07-28',
      tools: [{ name: 'mcp__crm__find', description: 'Finds an order' }],
      problem: null,
    });
    await put('inside', { url: 'http://127.0.0.1:1/mcp' });
    const inside = McpServerTest.parse(await (await gateway.ask(tenant.admin, '/api/mcp/inside/test', { method: 'POST' })).json());
    expect(inside.ok).toBe(false);
    expect(inside.problem).not.toContain('ECONNREFUSED');
  });

  it('is the owner’s: not for cs keys, not for other tenants, and strict about what it takes', async () => {
    expect((await put('crm', { url: crm.url }, tenant.cs)).status).toBe(403);
    expect((await put('crm', { url: crm.url }, tenant.read)).status).toBe(403);
    for (const body of [{}, { url: 'stdio:' }, { url: crm.url, command: 'npx' }, { url: crm.url, headers: { host: 'x' } }])
      expect((await put('crm', body)).status).toBe(400);
    expect((await put('UPPER', { url: crm.url })).status).toBe(404);
    await put('crm', { url: crm.url });
    const other = await gateway.tenant();
    expect((await gateway.ask(other.admin, '/api/mcp/crm')).status).toBe(404);
  });
});

describe('POST /mcp', () => {
  async function connect(key: string, mode: 'auto' | 'legacy'): Promise<Client> {
    const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } });
    const requestInit = { headers: { Authorization: `Bearer ${key}` } };
    await client.connect(new StreamableHTTPClientTransport(new URL(`${gateway.url}/mcp`), { requestInit }));
    return client;
  }

  it.each([
    ['auto', '2026-07-28'],
    ['legacy', '2025-11-25'],
  ] as const)('offers the agents to a client that negotiates by %s, and takes turns', async (mode, version) => {
    const client = await connect(tenant.admin, mode);
    expect(client.getNegotiatedProtocolVersion()).toBe(version);
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(['ask_admin', 'ask_cs']);
    const first = await client.callTool({ name: 'ask_admin', arguments: { message: 'one two' } });
    expect(first).toMatchObject({ structuredContent: { reply: expect.stringContaining('one two'), finishReason: 'stop' } });
    const { contact_id } = z.object({ contact_id: z.string() }).parse(first.structuredContent);
    const second = await client.callTool({ name: 'ask_admin', arguments: { message: 'three', contact_id } });
    expect(second.structuredContent).toMatchObject({ contact_id });
    await client.close();
  });

  it('offers a key only the agents that it may talk to, own ones by their file', async () => {
    await tenant.scope.files.writeText('agents/shop.md', '---\ndescription: Sells things\npublic: true\n---\nSell.');
    await tenant.scope.files.writeText('agents/books.md', '---\ndescription: Keeps the books\n---\nCount.');
    const stranger = await connect(tenant.cs, 'auto');
    expect((await stranger.listTools()).tools.map(({ name }) => name)).toEqual(['ask_cs', 'ask_shop']);
    const refused = await stranger.callTool({ name: 'ask_books', arguments: { message: 'hello' } }).then(
      (result) => result.isError,
      () => true,
    );
    expect(refused).toBe(true);
    await stranger.close();
    const owner = await connect(tenant.admin, 'auto');
    expect((await owner.listTools()).tools.map(({ name }) => name)).toEqual(['ask_admin', 'ask_cs', 'ask_books', 'ask_shop']);
    await owner.close();
  });

  it('answers what cannot be with errors that a model can read', async () => {
    const client = await connect(tenant.admin, 'auto');
    const unknown = await client.callTool({ name: 'ask_cs', arguments: { message: 'hi', contact_id: '0'.repeat(32) } });
    expect(unknown).toMatchObject({ isError: true, content: [{ text: expect.stringContaining('not_found') }] });
    expect(await client.callTool({ name: 'ask_cs', arguments: { message: '' } })).toMatchObject({ isError: true });
    await client.close();
  });

  it('refuses a caller without a key, and a method that the protocol has no use for', async () => {
    await expect(connect('ck_live_wrong', 'auto')).rejects.toThrow('401');
    expect((await gateway.ask(tenant.read, '/mcp', { method: 'POST', body: {} })).status).toBe(403);
    expect((await gateway.ask(tenant.admin, '/mcp')).status).toBe(405);
    const broken = await gateway.ask(tenant.admin, '/mcp', {
      method: 'POST',
      body: '{',
      headers: { Accept: 'application/json, text/event-stream' },
    });
    expect(broken.status).toBe(400);
  });
});
