import { limits } from '../limits.ts';

/** The 28 first-party tools (contract §6), in the order in which models see them. `admin` may use every one of them. */
export const toolNames = [
  'read',
  'write',
  'edit',
  'list_files',
  'search_files',
  'bash',
  'exec',
  'process',
  'web_search',
  'web_fetch',
  'memory_search',
  'memory_get',
  'memory_write',
  'memory_forget',
  'load_skill',
  'manage_skill',
  'sessions_list',
  'session_history',
  'status',
  'subagents',
  'message',
  'reply',
  'channels',
  'contacts',
  'handoff',
  'cron',
  'view_attachment',
  'render_template',
] as const;
export type ToolName = (typeof toolNames)[number];

/**
 * The tools that a `cs` agent may have. The registry cannot define another one for it: the type of a definition follows
 * from this list.
 */
export const csToolNames = [
  'read',
  'web_search',
  'web_fetch',
  'memory_search',
  'memory_get',
  'memory_write',
  'load_skill',
  'session_history',
  'status',
  'reply',
  'contacts',
  'handoff',
  'view_attachment',
  'render_template',
] as const satisfies readonly ToolName[];
export type CsToolName = (typeof csToolNames)[number];

const known: ReadonlySet<string> = new Set(toolNames);
const forCs: ReadonlySet<string> = new Set(csToolNames);

export function isToolName(name: string): name is ToolName {
  return known.has(name);
}

/**
 * `mcp__<server>__<tool>`: a tool of a server that the tenant has attached. Which ones there are is known only while a
 * turn runs.
 */
const mcpToolPattern = /^mcp__[a-zA-Z0-9_-]{1,59}$/u;

export function isMcpToolName(name: string): boolean {
  return mcpToolPattern.test(name);
}

/** Does an agent's list of tools name this one? `mcp__<server>__*` names all of a server. */
export function isListed(list: readonly string[], name: string): boolean {
  return list.some((entry) => entry === name || (entry.endsWith('*') && isMcpToolName(name) && name.startsWith(entry.slice(0, -1))));
}

/** May an agent of this authority have the tool at all? Unknown tools: no. */
export function mayUseTool(authority: 'admin' | 'cs', name: string): boolean {
  return authority === 'admin' ? known.has(name) : forCs.has(name);
}

/**
 * Prompt tokens for each tool that agents of this access get, on average: a test compares it with the size of the
 * descriptions.
 */
const tokensPerTool = { admin: 250, cs: 200 } as const;

/** About what the descriptions of so many tools take of a prompt. */
export function toolTokens(access: 'admin' | 'cs', count: number): number {
  return count * tokensPerTool[access];
}

/** What a turn keeps to itself when it starts another: whatever sends messages, or makes things happen later. */
const neverHandedOn: ReadonlySet<string> = new Set<ToolName>(['message', 'reply', 'handoff', 'channels', 'cron']);

/** The tools that a turn hands on to a turn that it starts. `depth`: that of the started turn. */
export function toolsHandedOn(own: readonly string[], depth: number): string[] {
  return own.filter((name) => !neverHandedOn.has(name) && (name !== 'subagents' || depth < limits.subagentDepthMax));
}
