import { AgentName, cutText, limits, MessageText } from '@concierge/contract';
import { z } from 'zod';
import { defineTool, ToolError } from '../tool.ts';
import type { ChildOutcome, ChildTask, ToolContext } from '../tool-context.ts';

/**
 * The limit of all replies of a call together, so that the model's result is cut per reply and never in the middle of
 * the list.
 */
const REPLIES_MAX_BYTES = limits.toolOutputModelMaxBytes - 8 * 1024;
const REPLY_MAX_BYTES = 16 * 1024;

const task = MessageText.describe(
  'What to do, complete in itself: the sub-agent knows nothing of this conversation. Say what the answer should contain.',
);
const agent = AgentName.optional().describe('Name of the agent that does it, from action list. Default: one like you.');

export const subagents = defineTool({
  name: 'subagents',
  domain: 'sessions',
  cs: 'never',
  description: [
    'Gives work to sub-agents and waits for their answers. Use it for parts that do not depend on one another (they run side by side), for',
    'work that would fill this conversation with details, or for what another agent is made for. Do small things yourself: each sub-agent',
    'is a conversation of its own. It has at most your tools, cannot speak to people, and cannot ask back.',
    `action "run": one task, or up to ${String(limits.subagentsPerCallMax)} in tasks; at most ${String(limits.subagentsPerTurnMax)} in one turn. action "list": the agents there are.`,
  ].join(' '),
  schema: z.strictObject({
    action: z.enum(['run', 'list']),
    task: task.optional(),
    agent,
    tasks: z
      .array(z.strictObject({ task, agent }))
      .min(1)
      .max(limits.subagentsPerCallMax)
      .optional()
      .describe('Several tasks, done side by side, in place of task and agent.'),
  }),
  sideEffect: 'resumes',
  timeoutMs: limits.turnTimeoutMs,
  run: async (input, { listAgents, runSubagents, callId, signal }) => {
    if (input.action === 'list') return listed(listAgents);
    const tasks = readTasks(input);
    const outcomes = await runSubagents(tasks, { callId, signal });
    const room = Math.min(REPLY_MAX_BYTES, Math.floor(REPLIES_MAX_BYTES / tasks.length));
    return outcomes.map((outcome, index) => rendered(outcome, { number: index + 1, of: tasks.length, room })).join('\n\n');
  },
});

function readTasks(input: {
  readonly task?: string | undefined;
  readonly agent?: string | undefined;
  readonly tasks?: readonly { readonly task: string; readonly agent?: string | undefined }[] | undefined;
}): ChildTask[] {
  if (input.tasks !== undefined) {
    if (input.task !== undefined || input.agent !== undefined)
      throw new ToolError('Give either task (with agent) or tasks, not both: the agent of each of several tasks stands beside it.');
    return input.tasks.map((one) => ({ task: one.task, agent: one.agent }));
  }
  if (input.task === undefined) throw new ToolError('Say what to do: task, or tasks for several.');
  return [{ task: input.task, agent: input.agent }];
}

async function listed(listAgents: ToolContext['listAgents']): Promise<string> {
  return (await listAgents()).map(({ name, description }) => `${name}: ${description}`).join('\n');
}

function rendered(outcome: ChildOutcome, { number, of, room }: { number: number; of: number; room: number }): string {
  const where = outcome.turnId === null ? '' : ` (turn ${outcome.turnId}, session ${outcome.sessionId ?? ''})`;
  const head = `[${String(number)} of ${String(of)}] ${outcome.status}${where}`;
  if (outcome.status !== 'done') return `${head}\n${outcome.reason}`;
  const { text, isCut } = cutText(outcome.reply.trim(), room);
  const note = isCut ? '\n[cut here: session_history with this session has the whole answer]' : '';
  return `${head}\n${text === '' ? '(it said nothing)' : text}${note}`;
}
