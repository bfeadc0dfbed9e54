import {
  agentRules,
  builtInAgent,
  builtInAgents,
  limits,
  toolsOfAgent,
  type AgentDefinition,
  type AgentView,
  type TenantSettings,
} from '@concierge/contract';
import type { InvalidAgent } from '@concierge/tenant';
import type { Handlers } from '../http/call.ts';

export function agentHandlers(): Pick<Handlers, 'listAgents'> {
  return {
    listAgents: async ({ caller }) => {
      const [settings, { valid, invalid }] = await Promise.all([caller.scope.settings(), caller.scope.agents.scan()]);
      const own = [...valid.map((agent) => viewOf(agent, settings)), ...invalid.map((file) => brokenView(file))];
      const json = [...builtInAgents.map((agent) => viewOf(agent, settings)), ...own.toSorted(byName)];
      return { kind: 'answer', status: 200, json };
    },
  };
}

function viewOf(agent: AgentDefinition, settings: TenantSettings): AgentView {
  const { name, description, access } = agent;
  const { allow, model = null, maxTurns } = agentRules(agent, settings);
  const builtIn = builtInAgent(name) !== undefined;
  return { name, description, public: access === 'cs', builtIn, tools: toolsOfAgent(access, allow), model, maxTurns, problem: null };
}

function brokenView({ name, path, reason }: InvalidAgent): AgentView {
  const problem = `${path}: ${reason}`;
  return { name, description: '', public: false, builtIn: false, tools: [], model: null, maxTurns: limits.maxTurnsDefault, problem };
}

function byName(left: AgentView, right: AgentView): number {
  return left.name < right.name ? -1 : 1;
}
