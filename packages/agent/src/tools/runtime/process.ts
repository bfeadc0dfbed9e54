import { limits } from '@concierge/contract';
import { z } from 'zod';
import { defineTool, ToolError } from '../tool.ts';
import type { ToolContext } from '../tool-context.ts';
import { endOf, keepEnds, secondsOf } from './command-result.ts';
import type { BackgroundCommand } from './runtime-access.ts';

const WAIT_MAX_MS = 60_000;
const HEADING_BYTES = 1024;

/** Named so as not to be taken for Node's own `process`. */
export const processTool = defineTool({
  name: 'process',
  domain: 'runtime',
  cs: 'never',
  description:
    'Looks after the commands that this turn has started in the background (bash or exec with background: true): ' +
    'list shows them all; output gives what one has printed since you last asked, and waits up to waitMs for it to print something or to end; kill ends one with everything it has started. ' +
    'It knows nothing of other turns: background commands end with their turn. To send a program input, write it to a file that the program reads.',
  schema: z.strictObject({
    action: z.enum(['list', 'output', 'kill']),
    id: z.string().optional().describe('Which command, as in p1. Needed for output and kill.'),
    waitMs: z
      .int()
      .min(0)
      .max(WAIT_MAX_MS)
      .optional()
      .describe(`For output: milliseconds to wait when there is nothing new. Default 0, at most ${String(WAIT_MAX_MS)}.`),
  }),
  sideEffect: 'writes',
  timeoutMs: limits.toolTimeoutMs + WAIT_MAX_MS,
  run: async ({ action, id, waitMs = 0 }, context) => {
    if (action === 'list') return listed(context);
    if (id === undefined) throw new ToolError(`Which one? Give the id with ${action}.\n${listed(context)}`);
    if (action === 'kill') await context.runtime.kill(id);
    else if (waitMs > 0) await context.runtime.waitFor(id, AbortSignal.any([context.signal, AbortSignal.timeout(waitMs)]));
    return newsOf(id, context);
  },
});

function newsOf(id: string, { runtime }: ToolContext): string {
  const output = runtime.takeOutput(id);
  // The state is read after the output was taken: a reported end comes with all output before it.
  const command = runtime.list().find((one) => one.id === id);
  const state = command === undefined ? '' : stateOf(command);
  const news = output === '' ? 'Nothing new was printed.' : keepEnds(output, limits.toolOutputModelMaxBytes - HEADING_BYTES);
  return `${id}: ${state}\n\n${news}`;
}

function listed({ runtime }: ToolContext): string {
  const commands = runtime.list();
  if (commands.length === 0) return 'No background commands have been started in this turn.';
  return commands.map((command) => `${command.id}: ${stateOf(command)}: ${command.title}`).join('\n');
}

function stateOf({ state, startedAtMs }: BackgroundCommand): string {
  switch (state.at) {
    case 'running':
      return `running for ${secondsOf(Date.now() - startedAtMs)}`;
    case 'ended':
      return endOf(state.result);
    case 'failed':
      return `could not run: ${state.reason}`;
  }
}
