import { z } from 'zod';
import { limits } from '../limits.ts';
import { AgentName, ModelRef, type TenantSettings } from './tenant.ts';
import { isMcpToolName, isListed, isToolName, mayUseTool, toolNames } from './tool-policy.ts';
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
    allow: commonOf(agent.tools, own?.tools),
    model: own?.model ?? agent.model ?? settings.model,
    maxTurns: bounds.length === 0 ? limits.maxTurnsDefault : Math.min(...bounds),
  };
}

/** What two lists both allow, be it by name or by `mcp__<server>__*`; a list that is not there allows everything. */
export function commonOf(left: readonly string[] | undefined, right: readonly string[] | undefined): readonly string[] | undefined {
  if (left === undefined || right === undefined) return left ?? right;
  return [...new Set([...left.filter((name) => isListed(right, name)), ...right.filter((name) => isListed(left, name))])];
}

/** The tools that an agent has: built-in ones that its access permits, attached ones that it lists. */
export function toolsOfAgent(access: Authority, allow: readonly string[] | undefined): string[] {
  const ours = toolNames.filter((name) => mayUseTool(access, name) && (allow?.includes(name) ?? true));
  return [...ours, ...(allow ?? []).filter((name) => !isToolName(name))];
}

/** The least of all the levels that apply. */
export function leastOf(...authorities: readonly Authority[]): Authority {
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
  })
  .meta({ id: 'Agent' });
export type AgentView = z.infer<typeof AgentView>;

/** Is this a name that a file of the tenant's may have? */
export function isOwnAgentName(name: string): boolean {
  return AgentName.safeParse(name).success && builtInAgent(name) === undefined;
}
