import { z } from 'zod';
import { AgentView } from '../../tenants/agent.ts';
import { defineRoute } from '../route.ts';

export const listAgents = defineRoute({
  id: 'listAgents',
  method: 'get',
  path: '/api/agents',
  tag: 'agents',
  summary: 'All agents: the built-in ones, and those of agents/<name>.md',
  description: 'A file that cannot be used is listed with its `problem`.',
  auth: 'key',
  scopes: ['admin', 'read'],
  answers: { 200: { description: 'Agents, the built-in ones first, then by name.', json: z.array(AgentView) } },
  errors: [],
});
