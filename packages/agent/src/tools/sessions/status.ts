import type { UsageRow } from '@concierge/contract';
import { z } from 'zod';
import { defineTool } from '../tool.ts';
import type { ToolContext } from '../tool-context.ts';

const PERCENT = 100;

export const status = defineTool({
  name: 'status',
  domain: 'sessions',
  cs: 'narrow',
  description:
    'Tells about this conversation and turn: current time, agent, channel, model, how full the context is, what this turn has used so far, and what the whole workspace has used today.',
  narrowDescription: 'Tells about this conversation: current time, channel, and how full the context is.',
  schema: z.strictObject({}),
  sideEffect: 'none',
  run: async (_input, context) => {
    const now = context.status();
    const { turn } = now;
    const fill = Math.round((now.contextTokens / now.contextWindow) * PERCENT);
    const lines = [
      `Time: ${now.time}`,
      `Agent: ${now.agent}, on channel ${now.channel}`,
      `Session: ${now.sessionId}, ${String(now.messages)} messages${now.compacted ? ', the oldest of them summarised' : ''}`,
      `Context: about ${String(now.contextTokens)} of ${String(now.contextWindow)} tokens (${String(fill)} %)`,
    ];
    // What things cost, and on which model, is the owner's business and not a customer's.
    if (context.access === 'cs') return lines.join('\n');
    lines.push(
      `Model: ${now.model}`,
      `This turn: ${String(turn.modelCalls)} of ${String(turn.maxTurns)} model calls, ${String(turn.inputTokens)} input and ${String(turn.outputTokens)} output tokens`,
      `Workspace today (UTC), turns that have ended: ${await usageOfToday(context)}`,
    );
    return lines.join('\n');
  },
});

async function usageOfToday({ usageToday }: Pick<ToolContext, 'usageToday'>): Promise<string> {
  // The index may be away; everything else here is known without it.
  const rows = await usageToday?.().catch(() => undefined);
  return rows === undefined ? 'not known at the moment' : describe(rows);
}

function describe(rows: readonly UsageRow[]): string {
  if (rows.length === 0) return 'none yet';
  const sum = (pick: (row: UsageRow) => number): string => String(rows.reduce((total, row) => total + pick(row), 0));
  const priced = rows.filter((row) => row.costUsd !== null);
  const cost = priced.length === 0 ? '' : `, ${priced.reduce((total, row) => total + (row.costUsd ?? 0), 0).toFixed(4)} US dollars`;
  return `${sum((row) => row.calls)} model calls, ${sum((row) => row.inputTokens)} input and ${sum((row) => row.outputTokens)} output tokens${cost}`;
}
