export { McpServerError, type McpCallResult, type McpServer, type McpTool, type McpToolList } from './mcp-tools.ts';
export type { McpFetch } from './mcp-connection.ts';
export { McpServers, type McpServersOptions } from './mcp-servers.ts';
