import { describe, expect, it } from '@jest/globals';
import { McpServerBody } from '@concierge/contract';
import { McpServers } from '@concierge/mcp';
import { eventually, serveRequests, silentLog } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { McpTools } from '../src/capabilities/turn-capabilities.ts';
import { TestRunner, type PlayedTurn } from './test-runner.ts';

const asked: string[] = [];
const crm = createMcpHandler(() => {
  const server = new McpServer({ name: 'crm', version: '1' });
  server.registerTool(
    'find',
    { description: 'Finds an order', inputSchema: z.object({ order: z.string() }), annotations: { readOnlyHint: true } },
    ({ order }) => {
      asked.push(order);
      return { content: [{ type: 'text', text: `order ${order}: on its way` }] };
    },
  );
  server.registerTool('refund', { inputSchema: z.object({}) }, () => ({ content: [{ type: 'text', text: 'not today' }], isError: true }));
  return server;
});

let endpoint: Awaited<ReturnType<typeof serveRequests>>;
let fixture: TestRunner;
const servers = new McpServers({ fetch: async (url, init) => fetch(url, init), explain: () => undefined });

setUpOnce(async (stack) => {
  endpoint = stack.use(await serveRequests(crm.fetch));
  stack.defer(async () => servers.close());
  // The client's library is loaded at its first use, within the few seconds that a server has to list its tools.
  const warm = { name: 'warm', url: endpoint.url, headers: {}, tools: null, timeoutMs: 60_000, revision: 'warm' };
  await eventually(async () => servers.freshTools('warm', warm, new AbortController().signal));
  const attached = new McpTools({ servers, log: silentLog });
  fixture = stack.use(await TestRunner.start({ tools: { attached } }));
});

/** Once its tools are known: a server that stood still for some seconds, as this process may, is passed over. */
async function attach(name: string, own: Partial<McpServerBody> = {}): Promise<void> {
  const { mcp, tenantId } = fixture.scope;
  await mcp.put(name, McpServerBody.parse({ url: endpoint.url, ...own }));
  const server = await mcp.open(name);
  await eventually(async () => servers.freshTools(tenantId, server, new AbortController().signal));
}

const offeredIn = ({ requests }: PlayedTurn): string[] => (requests[0]?.body.tools ?? []).map((tool) => tool.function.name);
const use = { name: 'mcp__crm__find', input: { order: 'A-7' } };
const refused = { isError: true, output: expect.stringContaining('There is no tool') };

describe('tools of an attached server', () => {
  it('are offered beside ours and work, and their failures are results', async () => {
    await attach('crm');
    const turn = await fixture.play([use, { name: 'mcp__crm__refund', input: {} }]);
    expect(offeredIn(turn)).toEqual(expect.arrayContaining(['read', 'mcp__crm__find', 'mcp__crm__refund']));
    expect(turn.results).toMatchObject([
      { output: 'order A-7: on its way', isError: false },
      { output: 'not today', isError: true },
    ]);
    expect(asked).toEqual(['A-7']);
  });

  it('are none of an agent that the server does not name: cs has them only by name', async () => {
    await attach('crm', { agents: ['admin'] });
    const stranger = { agent: 'cs', authority: 'cs', sender: 'bob' } as const;
    const without = await fixture.play([use], stranger);
    expect(offeredIn(without)).not.toContain('mcp__crm__find');
    expect(without.results).toMatchObject([refused]);
    await attach('crm', { agents: ['admin', 'cs'], tools: ['find'] });
    const given = await fixture.play(
      [use, { name: 'mcp__crm__refund', input: {} }, { name: 'write', input: { path: 'x', content: '' } }],
      stranger,
    );
    expect(given.results).toMatchObject([{ isError: false }, refused, refused]);
  });

  it('are subject to the lists of the agent, of the settings and of the turn that started this one', async () => {
    await attach('crm', { agents: ['admin', 'shop'] });
    await fixture.scope.files.writeText('agents/shop.md', '---\ndescription: Shop\ntools: [read, mcp__crm__*]\n---\nSell.');
    expect(offeredIn(await fixture.play([], { agent: 'shop' })).toSorted()).toEqual(['mcp__crm__find', 'mcp__crm__refund', 'read']);
    await fixture.scope.updateSettings({ agents: { shop: { tools: ['mcp__crm__find'] } } });
    expect(offeredIn(await fixture.play([], { agent: 'shop' }))).toEqual(['mcp__crm__find']);
    await fixture.scope.updateSettings({ agents: { shop: { tools: ['read'] } } });
    const turn = await fixture.play([use], { agent: 'shop' });
    expect(offeredIn(turn)).toEqual(['read']);
    expect(turn.results).toMatchObject([refused]);
  });

  it('never break a turn: a server that is down is passed over, one that goes down is an error to read', async () => {
    await attach('crm');
    await fixture.scope.mcp.put('down', McpServerBody.parse({ url: 'http://127.0.0.1:9/mcp' }));
    const turn = await fixture.play([use, { name: 'mcp__down__anything', input: {} }]);
    expect(turn.results).toMatchObject([{ isError: false }, refused]);
    await using leaving = await serveRequests(crm.fetch);
    await attach('leaving', { url: leaving.url });
    expect(offeredIn(await fixture.play([]))).toContain('mcp__leaving__find');
    await leaving[Symbol.asyncDispose]();
    expect((await fixture.play([{ name: 'mcp__leaving__find', input: { order: 'B' } }])).results).toMatchObject([
      { isError: true, output: expect.stringContaining('The MCP server leaving could not be asked') },
    ]);
  });
});
