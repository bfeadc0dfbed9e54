import type { ToolAccess } from '@concierge/agent';
import {
  agentRules,
  AppError,
  builtInAgent,
  intersectTools,
  lowestAuthority,
  type AgentDefinition,
  type TenantSettings,
} from '@concierge/contract';
import type { TurnRun } from '@concierge/turn';

/** The agent of one turn, and all that decides what it may do. */
export interface TurnAgent {
  readonly name: string;
  readonly access: ToolAccess;
  /** Names of the tools it may have at most; undefined: all that its access gives. */
  readonly allow: readonly string[] | undefined;
  readonly model: string | undefined;
  readonly maxTurns: number;
  /** What it adds to the prompt; null for a built-in agent. */
  readonly part: string | null;
}

/** The agent cannot take this turn, however often it is tried: the turn ends with this message. */
export class AgentUnusable extends AppError {}

/**
 * Who runs the turn, as things are now: the definition, narrowed by tenant.json, by the authority that the turn was
 * accepted with, and by what the turn that started it has handed on. Nothing here widens. @throws AgentUnusable
 */
export async function turnAgent({ scope, turn }: TurnRun, settings: TenantSettings): Promise<TurnAgent> {
  const builtIn = builtInAgent(turn.agent);
  const { definition, part } = builtIn === undefined ? await ownAgent(scope, turn.agent) : { definition: builtIn, part: null };
  // A prompt that was written for the owner is not shown to strangers, even when it was public as they asked.
  if (part !== null && definition.access === 'admin' && turn.authority === 'cs')
    throw new AgentUnusable('scope_required', `The agent ${turn.agent} is not public.`);
  const { allow, model, maxTurns } = agentRules(definition, settings);
  const access = lowestAuthority(definition.access, turn.authority);
  return { name: turn.agent, access, allow: intersectTools(intersectTools(allow, turn.tools), turn.grant?.tools), model, maxTurns, part };
}

/** Undefined when there is none that can be used. */
export async function agentDefinition(scope: TurnRun['scope'], name: string): Promise<AgentDefinition | undefined> {
  const found = builtInAgent(name) ?? (await scope.agents.find(name));
  if (found === undefined || 'reason' in found) return undefined;
  return 'agent' in found ? found.agent : found;
}

async function ownAgent(scope: TurnRun['scope'], name: string): Promise<{ definition: AgentDefinition; part: string }> {
  const found = await scope.agents.find(name);
  if (found === undefined) throw new AgentUnusable('not_found', `There is no agent ${name} (any more).`);
  if ('reason' in found) throw new AgentUnusable('not_found', `The agent ${name} cannot be used: ${found.reason}.`);
  return { definition: found.agent, part: found.agent.body };
}
