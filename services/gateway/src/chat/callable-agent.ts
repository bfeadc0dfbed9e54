import { AppError, builtInAgent, builtInAgents, type AgentDefinition } from '@concierge/contract';
import type { Caller } from '../http/call.ts';

/**
 * The agent that a key may talk to. An agent that is not public needs the scope `admin`, and only that scope learns
 * what is wrong with a file.
 * @throws AppError `not_found`, `scope_required`
 */
export async function callableAgent({ scope, key }: Caller, name: string): Promise<AgentDefinition> {
  const mayAll = key.scopes.includes('admin');
  const found = await agentOf(scope, name);
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

async function agentOf(
  scope: Caller['scope'],
  name: string,
): Promise<{ readonly agent: AgentDefinition } | { readonly reason: string } | undefined> {
  const builtIn = builtInAgent(name);
  return builtIn === undefined ? scope.agents.find(name) : { agent: builtIn };
}
