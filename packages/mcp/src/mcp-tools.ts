import type { Tool, CallToolResult, ContentBlock } from '@modelcontextprotocol/client';
import { createHash } from 'node:crypto';

/** One attached server, ready to connect to: secrets opened. */
export interface McpServer {
  readonly name: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Only these of its tools; null: all. */
  readonly tools: readonly string[] | null;
  readonly timeoutMs: number;
  /** Changes whenever anything of the server does: an open connection is then left. */
  readonly revision: string;
}

/** One tool of a server as a model may be offered it. Its description is the server's claim. */
export interface McpTool {
  /** As the model sees it: `mcp__<server>__<tool>`. */
  readonly name: string;
  /** As the server knows it. */
  readonly remoteName: string;
  readonly description: string;
  /** An object schema. */
  readonly parameters: Readonly<Record<string, unknown>>;
  /** The server claims that it changes nothing. */
  readonly isReadOnly: boolean;
}

export interface McpToolList {
  readonly protocolVersion: string | null;
  readonly tools: readonly McpTool[];
}

export interface McpCallResult {
  readonly text: string;
  readonly isError: boolean;
}

/**
 * The server cannot be reached, or does not follow the protocol. The message is for the tenant: nothing internal in it.
 */
export class McpServerError extends Error {
  override readonly name = 'McpServerError';
}

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
    const name = buildToolName(server.name, tool.name);
    if (!offered.has(name)) offered.set(name, { name, ...readTool(tool) });
  }
  return [...offered.values()];
}

function readTool(tool: Tool): Omit<McpTool, 'name'> {
  const said = tool.description ?? tool.title ?? tool.annotations?.title ?? '';
  return {
    remoteName: tool.name,
    description: said.toWellFormed().slice(0, DESCRIPTION_MAX_CHARACTERS).trim(),
    parameters: toParameters(tool.inputSchema),
    isReadOnly: tool.annotations?.readOnlyHint === true,
  };
}

/** A schema that is too large or too deep is not shown: the server still checks what it is sent. */
function toParameters(schema: Tool['inputSchema']): McpTool['parameters'] {
  const { $schema: _dialect, ...parameters } = schema;
  if (measureDepth(parameters) > SCHEMA_DEPTH_MAX || JSON.stringify(parameters).length > SCHEMA_MAX_CHARACTERS) return { type: 'object' };
  return { ...parameters, type: 'object' };
}

/** Gives up behind the limit, so that it ends with any value. */
function measureDepth(value: unknown, depth = 0): number {
  if (typeof value !== 'object' || value === null || depth > SCHEMA_DEPTH_MAX) return depth;
  return Math.max(depth, ...Object.values(value).map((inner) => measureDepth(inner, depth + 1)));
}

/** What chat-completion providers take as a function's name: `^[a-zA-Z0-9_-]{1,64}$`. */
const NAME_MAX_CHARACTERS = 64;
const HASH_CHARACTERS = 8;

/**
 * `mcp__<server>__<tool>`; a tool whose own name does not fit gets a shorter one that no other tool of the server has.
 */
export function buildToolName(server: string, tool: string): string {
  const plain = tool.replaceAll(/[^a-zA-Z0-9_-]/gu, '_');
  const whole = `mcp__${server}__${plain}`;
  if (plain === tool && whole.length <= NAME_MAX_CHARACTERS) return whole;
  const hash = createHash('sha256').update(tool).digest('hex').slice(0, HASH_CHARACTERS);
  return `${whole.slice(0, NAME_MAX_CHARACTERS - HASH_CHARACTERS - 1)}_${hash}`;
}

/** A tool's result as text for a model: what is no text is named, not shown. */
export function resultText(result: CallToolResult): string {
  const said = result.content.map((block) => blockText(block)).filter((text) => text !== '');
  if (said.length > 0) return said.join('\n\n');
  return result.structuredContent === undefined ? '' : JSON.stringify(result.structuredContent, undefined, 2);
}

function blockText(block: ContentBlock): string {
  switch (block.type) {
    case 'text':
      return block.text;
    case 'image':
    case 'audio':
      return `[${block.type} of type ${block.mimeType}, ${String(Math.floor((block.data.length * 3) / 4))} bytes: not shown]`;
    case 'resource_link':
      return `[resource ${block.name}: ${block.uri}]`;
    case 'resource':
      return 'text' in block.resource ? block.resource.text : `[resource ${block.resource.uri}: not text, not shown]`;
  }
}
