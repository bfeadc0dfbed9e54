import { limits } from './limits.ts';

/** Who may call what (contract §6). `narrow`: the agent gets it in a narrower form. */
type Access = 'full' | 'narrow' | 'never';

interface ToolFacts {
  readonly domain: 'files' | 'runtime' | 'web' | 'memory' | 'skills' | 'sessions' | 'messaging' | 'automation' | 'documents';
  readonly cs: Access;
}

/** The 28 first-party tools. `admin` may use every one of them. */
export const toolPolicy = {
  read: { domain: 'files', cs: 'narrow' },
  write: { domain: 'files', cs: 'never' },
  edit: { domain: 'files', cs: 'never' },
  list_files: { domain: 'files', cs: 'never' },
  search_files: { domain: 'files', cs: 'never' },
  bash: { domain: 'runtime', cs: 'never' },
  exec: { domain: 'runtime', cs: 'never' },
  process: { domain: 'runtime', cs: 'never' },
  web_search: { domain: 'web', cs: 'narrow' },
  web_fetch: { domain: 'web', cs: 'narrow' },
  memory_search: { domain: 'memory', cs: 'narrow' },
  memory_get: { domain: 'memory', cs: 'narrow' },
  memory_write: { domain: 'memory', cs: 'narrow' },
  memory_forget: { domain: 'memory', cs: 'never' },
  load_skill: { domain: 'skills', cs: 'full' },
  manage_skill: { domain: 'skills', cs: 'never' },
  sessions_list: { domain: 'sessions', cs: 'never' },
  session_history: { domain: 'sessions', cs: 'narrow' },
  status: { domain: 'sessions', cs: 'narrow' },
  subagents: { domain: 'sessions', cs: 'never' },
  message: { domain: 'messaging', cs: 'never' },
  reply: { domain: 'messaging', cs: 'full' },
  channels: { domain: 'messaging', cs: 'never' },
  contacts: { domain: 'messaging', cs: 'narrow' },
  handoff: { domain: 'messaging', cs: 'full' },
  cron: { domain: 'automation', cs: 'never' },
  view_attachment: { domain: 'documents', cs: 'narrow' },
  render_template: { domain: 'documents', cs: 'full' },
} as const satisfies Record<string, ToolFacts>;

export type ToolName = keyof typeof toolPolicy;

export function isToolName(name: string): name is ToolName {
  return Object.hasOwn(toolPolicy, name);
}

/** `mcp__<server>__<tool>`: a tool of a server that the tenant has attached. Which ones there are is known only while a turn runs. */
const attachedToolPattern = /^mcp__[a-zA-Z0-9_-]{1,59}$/u;

export function isAttachedToolName(name: string): boolean {
  return attachedToolPattern.test(name);
}

/** Does an agent's list of tools name this one? `mcp__<server>__*` names all of a server. */
export function isListed(list: readonly string[], name: string): boolean {
  return list.some((entry) => entry === name || (entry.endsWith('*') && isAttachedToolName(name) && name.startsWith(entry.slice(0, -1))));
}

/** May an agent of this authority have the tool at all? Unknown tools: no. */
export function mayUseTool(authority: 'admin' | 'cs', name: string): boolean {
  if (!isToolName(name)) return false;
  return authority === 'admin' || toolPolicy[name].cs !== 'never';
}

/** Of a prompt, for each tool that agents of this access are given, on average: a test compares it with what the descriptions take. */
const tokensPerTool = { admin: 250, cs: 200 } as const;

/** About what the descriptions of so many tools take of a prompt. */
export function toolTokens(access: 'admin' | 'cs', count: number): number {
  return count * tokensPerTool[access];
}

/** What a turn keeps to itself when it starts another: whatever speaks to people, or makes things happen later. */
const neverHandedOn: ReadonlySet<string> = new Set<ToolName>(['message', 'reply', 'handoff', 'channels', 'cron']);

/** Of a turn's own tools those that a turn may have which it starts. `depth`: of the one that is started. */
export function toolsHandedOn(own: readonly string[], depth: number): string[] {
  return own.filter((name) => !neverHandedOn.has(name) && (name !== 'subagents' || depth < limits.subagentDepthMax));
}
