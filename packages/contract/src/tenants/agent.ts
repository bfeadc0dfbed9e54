import { z } from 'zod';
import { limits } from '../limits.ts';
import { FileProblem } from './file-problem.ts';
import type { ModelFacts } from './provider.ts';
import { AgentName, ModelRef, type TenantSettings } from './tenant.ts';
import type { Authority } from '../turns/turn.ts';

const AgentTool = z
  .string()
  .refine((name) => isToolName(name) || isMcpToolName(name.replace(/__\*$/u, '__all')), 'is not the name of a tool');

/** Front matter of agents/<name>.md. An unknown key is an error, so that a typo is not silence. */
export const AgentFrontMatter = z.strictObject({
  description: z.string().trim().min(1).max(limits.agentDescriptionMaxCharacters),
  /** At most these; without the list, all that its access gives. */
  tools: z.array(AgentTool).optional(),
  model: ModelRef.optional(),
  maxTurns: z.int().min(1).max(limits.maxTurnsMax).optional(),
  /** For strangers: it runs as cs does, for every caller. */
  public: z.boolean().default(false),
});

/** An agent as it is defined: built in, or by a file of the tenant's. */
export interface AgentDefinition {
  readonly name: string;
  readonly description: string;
  /** The most it may do, for every caller. */
  readonly access: Authority;
  readonly tools?: readonly string[] | undefined;
  readonly model?: string | undefined;
  readonly maxTurns?: number | undefined;
}

/** What an agent goes by in a turn, after the tenant's settings. */
export interface AgentRules {
  /** Names it may have at most; undefined: all that its access gives. */
  readonly allow: readonly string[] | undefined;
  /** Undefined: the deployment's default. */
  readonly model: string | undefined;
  readonly maxTurns: number;
}

export const builtInAgents: readonly AgentDefinition[] = [
  { name: 'admin', description: 'Works for the owner, with every tool.', access: 'admin' },
  { name: 'cs', description: 'Answers the customers, with what strangers may be given.', access: 'cs' },
];

export function builtInAgent(name: string): AgentDefinition | undefined {
  return builtInAgents.find((agent) => agent.name === name);
}

/**
 * What tenant.json makes of an agent. It narrows: of two lists of tools what both have, of two bounds the lower one.
 * The model is chosen by the first who names one: tenant.json for this agent, the agent's file, tenant.json for all.
 */
export function agentRules(agent: AgentDefinition, settings: Pick<TenantSettings, 'agents' | 'model'>): AgentRules {
  const own = settings.agents?.[agent.name];
  const bounds = [agent.maxTurns, own?.maxTurns].filter((bound) => bound !== undefined);
  return {
    allow: intersectTools(agent.tools, own?.tools),
    model: own?.model ?? agent.model ?? settings.model,
    maxTurns: bounds.length === 0 ? limits.maxTurnsDefault : Math.min(...bounds),
  };
}

/** What two lists both allow, be it by name or by `mcp__<server>__*`; a list that is not there allows everything. */
export function intersectTools(left: readonly string[] | undefined, right: readonly string[] | undefined): readonly string[] | undefined {
  if (left === undefined || right === undefined) return left ?? right;
  return [...new Set([...left.filter((name) => isListed(right, name)), ...right.filter((name) => isListed(left, name))])];
}

/** The tools that an agent has: built-in ones that its access permits, attached ones that it lists. */
export function toolsOfAgent(access: Authority, allow: readonly string[] | undefined): string[] {
  const ours = toolNames.filter((name) => mayUseTool(access, name) && (allow?.includes(name) ?? true));
  return [...ours, ...(allow ?? []).filter((name) => !isToolName(name))];
}

/** The least of all the levels that apply. */
export function lowestAuthority(...authorities: readonly Authority[]): Authority {
  return authorities.includes('cs') ? 'cs' : 'admin';
}

/** GET /api/agents. */
export const AgentView = z
  .object({
    name: z.string(),
    description: z.string(),
    public: z.boolean(),
    builtIn: z.boolean(),
    tools: z.array(z.string()),
    /** Null: the deployment's default. */
    model: z.string().nullable(),
    maxTurns: z.int().positive(),
    /** Why it cannot be used; null when it can. */
    problem: z.string().nullable(),
    problems: z.array(FileProblem).optional().meta({ description: 'The same, one each; none when it can be used.' }),
  })
  .meta({ id: 'Agent' });
export type AgentView = z.infer<typeof AgentView>;

/** Is this a name that a file of the tenant's may have? */
export function isOwnAgentName(name: string): boolean {
  return AgentName.safeParse(name).success && builtInAgent(name) === undefined;
}

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

/** What keeps an agent from a tool by its name alone. */
export type ToolRefusal = 'unknown_tool' | 'access' | 'not_listed';

/**
 * The rule that refuses a tool to an agent with this access and this list; undefined when none does. A list that is not
 * there allows everything. Asked at every call of a turn, and by who wants to know before.
 */
export function findToolRefusal(
  name: string,
  { access, allow }: { readonly access: Authority; readonly allow: readonly string[] | undefined },
): ToolRefusal | undefined {
  if (!isMcpToolName(name)) {
    if (!isToolName(name)) return 'unknown_tool';
    if (!mayUseTool(access, name)) return 'access';
  }
  return allow === undefined || isListed(allow, name) ? undefined : 'not_listed';
}

/** All that agents for strangers may see of the tenant's files. */
const sharedFolders: ReadonlySet<string> = new Set(['skills', 'templates']);

/** Whether a part of a path begins with a dot: it is hidden, with all that is in it. */
export function hasHiddenPart(path: string): boolean {
  return path.split('/').some((part) => part.startsWith('.'));
}

/**
 * May an agent with the access `cs` read this file? Not what begins with a dot there, such as earlier versions of
 * skills: what the owner took out of them is not for customers.
 */
export function isSharedPath(path: string): boolean {
  const [first = ''] = path.split('/', 1);
  return sharedFolders.has(first) && !hasHiddenPart(path);
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

/** Share of the window that is left to the answer when the model's own maximum would take more. */
const ANSWER_SHARE_MAX = 0.25;
/** Estimates are wrong by a few per cent. */
const MARGIN_SHARE = 0.03;

/** Tokens that prompt, tools and messages may use together: the context window without what the answer needs. */
export function countLimitTokens(facts: Pick<ModelFacts, 'contextWindow' | 'maxOutputTokens'>): number {
  const reserve = Math.min(facts.maxOutputTokens, facts.contextWindow * ANSWER_SHARE_MAX);
  return Math.floor(facts.contextWindow - reserve - facts.contextWindow * MARGIN_SHARE);
}

/** The share of these that tools and prompt may take; a larger one leaves hardly any room for a conversation. */
export const overheadShareMax = 0.5;

/** What a turn keeps to itself when it starts another: whatever sends messages, or makes things happen later. */
const neverHandedOn: ReadonlySet<string> = new Set<ToolName>(['message', 'reply', 'handoff', 'channels', 'cron']);

/** The tools that a turn hands on to a turn that it starts. `depth`: that of the started turn. */
export function toolsHandedOn(own: readonly string[], depth: number): string[] {
  return own.filter((name) => !neverHandedOn.has(name) && (name !== 'subagents' || depth < limits.subagentDepthMax));
}
