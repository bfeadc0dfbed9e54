import { z } from 'zod';
import { limits } from '../../limits.ts';
import { McpServerBody, McpServerName, McpServerTest, McpServerView } from '../../tenants/mcp.ts';
import { defineRoute } from '../route.ts';

const params = z.object({ name: McpServerName });

export const listMcpServers = defineRoute({
  id: 'listMcpServers',
  method: 'get',
  path: '/api/mcp',
  tag: 'mcp',
  summary: 'MCP servers whose tools the agents may use',
  auth: 'key',
  scopes: ['admin', 'read'],
  answers: { 200: { description: 'Servers by name, without the values of their headers.', json: z.array(McpServerView) } },
  errors: [],
});

export const getMcpServer = defineRoute({
  id: 'getMcpServer',
  method: 'get',
  path: '/api/mcp/{name}',
  tag: 'mcp',
  summary: 'One attached MCP server',
  auth: 'key',
  scopes: ['admin', 'read'],
  params,
  answers: { 200: { description: 'The server.', json: McpServerView } },
  errors: ['not_found'],
});

export const putMcpServer = defineRoute({
  id: 'putMcpServer',
  audit: 'mcp-server.put',
  method: 'put',
  path: '/api/mcp/{name}',
  tag: 'mcp',
  summary: 'Attach an MCP server, or change it',
  description:
    'Streamable HTTP only, at a public address. Its tools are called `mcp__<name>__<tool>` and are offered from the next turn on.',
  auth: 'key',
  scopes: ['admin'],
  params,
  body: { kind: 'json', schema: McpServerBody },
  answers: {
    200: { description: 'It is changed.', json: McpServerView },
    201: { description: 'It is attached.', json: McpServerView },
  },
  errors: ['not_found'],
});

export const deleteMcpServer = defineRoute({
  id: 'deleteMcpServer',
  audit: 'mcp-server.delete',
  method: 'delete',
  path: '/api/mcp/{name}',
  tag: 'mcp',
  summary: 'Detach an MCP server',
  auth: 'key',
  scopes: ['admin'],
  params,
  answers: { 204: { description: 'It is gone, with its credentials.' } },
  errors: ['not_found'],
});

export const testMcpServer = defineRoute({
  id: 'testMcpServer',
  method: 'post',
  path: '/api/mcp/{name}/test',
  tag: 'mcp',
  summary: 'Ask an attached MCP server for its tools',
  auth: 'key',
  scopes: ['admin'],
  params,
  answers: { 200: { description: 'What it answered, or why it could not be asked.', json: McpServerTest } },
  errors: ['not_found'],
});

/** An error response of JSON-RPC 2.0 (section 5); "id" is null when the request could not be read. */
const JsonRpcError = z
  .looseObject({
    jsonrpc: z.literal('2.0'),
    id: z.union([z.string(), z.number(), z.null()]),
    error: z.looseObject({ code: z.int(), message: z.string() }),
  })
  .meta({ id: 'JsonRpcError' });

/**
 * Streamable HTTP of the Model Context Protocol, stateless: revision 2026-07-28, and 2025-11-25 and older ones by
 * `initialize`.
 */
export const serveMcp = defineRoute({
  id: 'serveMcp',
  method: 'post',
  path: '/mcp',
  tag: 'mcp',
  summary: 'The agents of the tenant as tools of an MCP server',
  description:
    'JSON-RPC as the protocol has it; errors of the protocol are JSON-RPC errors. One tool for each agent that the key may talk to.',
  auth: 'key',
  scopes: ['admin', 'cs'],
  waitsForTurn: true,
  body: { kind: 'raw', maxBytes: limits.jsonBodyMaxBytes },
  answers: {
    200: { description: 'A JSON-RPC message, or a stream of them.', text: 'application/json' },
    202: { description: 'A notification has been taken.' },
    400: { description: 'No message of the protocol, or of an unsupported revision.', json: JsonRpcError },
    406: { description: 'The client does not accept both JSON and event streams.', json: JsonRpcError },
    415: { description: 'The body is not JSON.', json: JsonRpcError },
  },
  errors: ['too_large'],
});
