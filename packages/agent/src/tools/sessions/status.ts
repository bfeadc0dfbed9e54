import { z } from 'zod';
import { defineTool } from '../tool.ts';

export const status = defineTool({
  name: 'status',
  description:
    'Tells about this conversation and turn: current time, agent, channel, model, how full the context is, and what this turn has used so far.',
  schema: z.strictObject({}),
  sideEffect: 'none',
  run: (_input, context) => {
    const now = context.status();
    const { turn } = now;
    const fill = Math.round((now.contextTokens / now.contextWindow) * 100);
    const lines = [
      `Time: ${now.time}`,
      `Agent: ${now.agent}, on channel ${now.channel}`,
      `Session: ${now.sessionId}, ${String(now.messages)} messages${now.compacted ? ', the oldest of them summarised' : ''}`,
      `Model: ${now.model}`,
      `Context: about ${String(now.contextTokens)} of ${String(now.contextWindow)} tokens (${String(fill)} %)`,
      `This turn: ${String(turn.modelCalls)} of ${String(turn.maxTurns)} model calls, ${String(turn.inputTokens)} input and ${String(turn.outputTokens)} output tokens`,
    ];
    return Promise.resolve(lines.join('\n'));
  },
});
