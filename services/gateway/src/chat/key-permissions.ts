import { AppError, builtInAgent, builtInAgents, type AgentDefinition } from '@concierge/contract';
import type { KeyRecord } from '@concierge/tenant';
import type { TurnViewer } from '@concierge/turn';
import type { Caller } from '../http/call.ts';

/**
 * The agent that a key may talk to. An agent that is not public needs the scope `admin`, and only that scope learns
 * what is wrong with a file.
 * @throws AppError `not_found`, `scope_required`
 */
export async function callableAgent({ scope, key }: Caller, name: string): Promise<AgentDefinition> {
  const mayAll = key.scopes.includes('admin');
  const found = await findAgent(scope, name);
  if (found === undefined) throw new AppError('not_found', 'There is no such agent.');
  if ('reason' in found)
    throw new AppError('not_found', mayAll ? `The agent ${name} cannot be used: ${found.reason}.` : 'There is no such agent.');
  if (found.agent.access === 'admin' && !mayAll)
    throw new AppError('scope_required', 'The key needs the scope admin: this agent is not public.');
  return found.agent;
}

/** All agents that a key may talk to, the built-in ones first. */
export async function callableAgents({ scope, key }: Caller): Promise<AgentDefinition[]> {
  const usable = await usableAgents(scope);
  return usable.filter(({ access }) => access === 'cs' || key.scopes.includes('admin'));
}

/** All agents of the tenant but those whose files cannot be used, the built-in ones first. */
export async function usableAgents(scope: Caller['scope']): Promise<AgentDefinition[]> {
  const { valid } = await scope.agents.scan();
  return [...builtInAgents, ...valid];
}

async function findAgent(
  scope: Caller['scope'],
  name: string,
): Promise<{ readonly agent: AgentDefinition } | { readonly reason: string } | undefined> {
  const builtIn = builtInAgent(name);
  return builtIn === undefined ? scope.agents.find(name) : { agent: builtIn };
}

/** A key for cs alone sees only the turns that it has started. */
export function toTurnViewer(key: KeyRecord): TurnViewer {
  return key.scopes.some((scope) => scope !== 'cs') ? {} : { onlyKeyId: key.id };
}
