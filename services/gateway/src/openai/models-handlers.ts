import { builtInAgent, type AgentDefinition, type ModelObject } from '@concierge/contract';
import { callableAgents, usableAgents } from '../chat/callable-agent.ts';
import type { Caller, Handlers } from '../http/call.ts';
import { noModel } from './no-model.ts';

/** The agents as OpenAI's clients list models. */
export function modelHandlers(): Pick<Handlers, 'listModels' | 'getModel'> {
  return {
    listModels: async ({ caller }) => {
      const agents = await visibleAgents(caller);
      return { kind: 'answer', status: 200, json: { object: 'list', data: agents.map((agent) => modelOf(agent, caller)) } };
    },
    getModel: async ({ caller, params }) => {
      const agents = await visibleAgents(caller);
      const agent = agents.find(({ name }) => name === params.model);
      if (agent === undefined) throw noModel(params.model);
      return { kind: 'answer', status: 200, json: modelOf(agent, caller) };
    },
  };
}

/** A key for reading may list all agents, and talk to none. */
async function visibleAgents(caller: Caller): Promise<AgentDefinition[]> {
  return caller.key.scopes.includes('read') ? usableAgents(caller.scope) : callableAgents(caller);
}

function modelOf({ name }: AgentDefinition, { scope }: Caller): ModelObject {
  return { id: name, object: 'model', created: 0, owned_by: builtInAgent(name) === undefined ? scope.tenantId : 'concierge' };
}
