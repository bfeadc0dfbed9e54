import { AgentName } from '@concierge/contract';
import { z } from 'zod';
import { defineTool } from '../tool.ts';

export const sessionsList = defineTool({
  name: 'sessions_list',
  description:
    'Lists the newest conversations of this workspace, with all agents and contacts: id, last change, agent, channel, messages, title. Read one with session_history.',
  schema: z.strictObject({
    limit: z.int().min(1).max(100).optional().describe('Default 20.'),
    agent: AgentName.optional().describe('Only those of one agent, such as "admin" or "cs".'),
  }),
  sideEffect: 'none',
  run: async ({ limit = 20, agent }, { sessions }) => {
    const items = await sessions.list({ limit, agent });
    if (items.length === 0) return 'There are no conversations yet.';
    return items
      .map((item) => `${item.id}  ${item.updatedAt}  ${item.agent}  ${item.channel}  ${String(item.messageCount)} messages  ${item.title}`)
      .join('\n');
  },
});
