import type { Tool } from '@modelcontextprotocol/client';
import { toolNameOf } from './tool-name.ts';
import type { McpServer, McpTool } from './mcp-server.ts';

const TOOLS_MAX = 128;
const DESCRIPTION_MAX_CHARACTERS = 2000;
/** The limit of one tool's schema as JSON: all of them stand in every prompt. */
const SCHEMA_MAX_CHARACTERS = 16_000;
const SCHEMA_DEPTH_MAX = 32;

/**
 * The tools of a server that may be offered: those the tenant allows, with names of ours, and nothing in them that
 * could break a request.
 */
export function offeredTools(server: Pick<McpServer, 'name' | 'tools'>, tools: readonly Tool[]): McpTool[] {
  const offered = new Map<string, McpTool>();
  for (const tool of tools) {
    if (offered.size === TOOLS_MAX) break;
    if (server.tools !== null && !server.tools.includes(tool.name)) continue;
    const name = toolNameOf(server.name, tool.name);
    if (!offered.has(name)) offered.set(name, { name, ...factsOf(tool) });
  }
  return [...offered.values()];
}

function factsOf(tool: Tool): Omit<McpTool, 'name'> {
  const said = tool.description ?? tool.title ?? tool.annotations?.title ?? '';
  return {
    remoteName: tool.name,
    description: said.toWellFormed().slice(0, DESCRIPTION_MAX_CHARACTERS).trim(),
    parameters: parametersOf(tool.inputSchema),
    isReadOnly: tool.annotations?.readOnlyHint === true,
  };
}

/** A schema that is too large or too deep is not shown: the server still checks what it is sent. */
function parametersOf(schema: Tool['inputSchema']): McpTool['parameters'] {
  const { $schema: _dialect, ...parameters } = schema;
  if (depthOf(parameters) > SCHEMA_DEPTH_MAX || JSON.stringify(parameters).length > SCHEMA_MAX_CHARACTERS) return { type: 'object' };
  return { ...parameters, type: 'object' };
}

/** Gives up behind the limit, so that it ends with any value. */
function depthOf(value: unknown, depth = 0): number {
  if (typeof value !== 'object' || value === null || depth > SCHEMA_DEPTH_MAX) return depth;
  return Math.max(depth, ...Object.values(value).map((inner) => depthOf(inner, depth + 1)));
}
