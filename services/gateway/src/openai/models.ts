import { builtInAgent, type AgentDefinition, type ModelObject, AppError } from '@concierge/contract';
import { callableAgents, usableAgents } from '../chat/key-permissions.ts';
import type { Caller, Handlers } from '../http/call.ts';

/** The agents as OpenAI's clients list models. */
export function modelHandlers(): Pick<Handlers, 'listModels' | 'getModel'> {
  return {
    listModels: async ({ caller }) => {
      const agents = await visibleAgents(caller);
      return { kind: 'answer', status: 200, json: { object: 'list', data: agents.map((agent) => toModelObject(agent, caller)) } };
    },
    getModel: async ({ caller, params }) => {
      const agents = await visibleAgents(caller);
      const agent = agents.find(({ name }) => name === params.model);
      if (agent === undefined) throw noModel(params.model);
      return { kind: 'answer', status: 200, json: toModelObject(agent, caller) };
    },
  };
}

/** A key for reading may list all agents, and talk to none. */
async function visibleAgents(caller: Caller): Promise<AgentDefinition[]> {
  return caller.key.scopes.includes('read') ? usableAgents(caller.scope) : callableAgents(caller);
}

function toModelObject({ name }: AgentDefinition, { scope }: Caller): ModelObject {
  return { id: name, object: 'model', created: 0, owned_by: builtInAgent(name) === undefined ? scope.tenantId : 'concierge' };
}

/** Known to OpenAI's clients as `model_not_found`. */
export function noModel(name: string): AppError {
  const message = `there is no agent ${JSON.stringify(name.slice(0, 80))} for this key; GET /v1/models lists those there are`;
  return new AppError('not_found', undefined, { errors: [{ path: 'model', message }] });
}
