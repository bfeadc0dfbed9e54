import type { McpServerTest } from '@concierge/contract';
import { McpServerError, type McpServers } from '@concierge/mcp';
import type { Handlers } from '../http/call.ts';

type McpServerHandlers = Pick<Handlers, 'listMcpServers' | 'getMcpServer' | 'putMcpServer' | 'deleteMcpServer' | 'testMcpServer'>;

/** The MCP servers that a tenant attaches. A change here asks the server for its tools; turns do so in their worker. */
export function mcpServerHandlers({ mcpServers }: { readonly mcpServers: Pick<McpServers, 'freshTools'> }): McpServerHandlers {
  return {
    listMcpServers: async ({ caller }) => ({ kind: 'answer', status: 200, json: await caller.scope.mcp.list() }),
    getMcpServer: async ({ caller, params }) => ({ kind: 'answer', status: 200, json: await caller.scope.mcp.find(params.name) }),
    putMcpServer: async ({ caller, params, body }) => {
      const { view, created } = await caller.scope.mcp.put(params.name, body);
      return { kind: 'answer', status: created ? 201 : 200, json: view };
    },
    deleteMcpServer: async ({ caller, params }) => {
      await caller.scope.mcp.remove(params.name);
      return { kind: 'answer', status: 204 };
    },
    testMcpServer: async ({ caller, params, response }) => {
      const server = await caller.scope.mcp.open(params.name);
      const gone = new AbortController();
      response.once('close', () => {
        gone.abort(new Error('the client has gone'));
      });
      const asked = mcpServers.freshTools(caller.scope.tenantId, server, gone.signal);
      return { kind: 'answer', status: 200, json: await asked.then(answered, failed) };
    },
  };
}

function answered({ protocolVersion, tools }: Awaited<ReturnType<McpServers['freshTools']>>): McpServerTest {
  return { ok: true, protocolVersion, tools: tools.map(({ name, description }) => ({ name, description })), problem: null };
}

function failed(error: unknown): McpServerTest {
  if (!(error instanceof McpServerError)) throw error;
  return { ok: false, protocolVersion: null, tools: [], problem: error.message };
}
