import { clip, limits } from '@concierge/contract';
import type { SandboxCommand } from '@concierge/sandbox';
import { z } from 'zod';
import { defineTool, ToolError } from '../tool.ts';
import type { ToolContext } from '../tool-context.ts';
import { describeResult, describeEnd, keepEnds, formatSeconds } from './command-result.ts';
import type { BackgroundCommand } from './runtime-access.ts';

const ARGUMENT_MAX_BYTES = 120_000;
const ARGUMENTS_MAX = 1000;
/** A part of the 2 MiB that Linux takes in all. */
const ARGUMENTS_MAX_BYTES = 1_000_000;
const TITLE_MAX_CHARACTERS = 120;
/**
 * Time to make the sandbox before, and to kill everything after, which a busy machine takes most of: the sandbox itself
 * ends the command when its time is over.
 */
const MARGIN_MS = 60_000;

/** One argument of a program, as the system takes it: Linux has room for 128 KiB in each. */
const argument = z
  .string()
  .refine((text) => !text.includes('\0'), 'must not contain a NUL character')
  .refine(
    (text) => Buffer.byteLength(text) <= ARGUMENT_MAX_BYTES,
    `must not be longer than ${String(ARGUMENT_MAX_BYTES)} bytes; put it into a file`,
  );

const timeoutArgument = z
  .int()
  .min(1)
  .max(limits.toolTimeoutMaxMs)
  .optional()
  .describe(
    `Milliseconds after which the command is killed. Default ${String(limits.toolTimeoutMs)}, at most ${String(limits.toolTimeoutMaxMs)}; in the background the default is the rest of the turn.`,
  );

const backgroundArgument = z
  .boolean()
  .optional()
  .describe('Start it and go on at once: the result is an id for the process tool. It ends with the turn at the latest.');

export const bash = defineTool({
  name: 'bash',
  domain: 'runtime',
  cs: 'never',
  description:
    'Runs a command line with bash in a sandbox that holds the tenant’s files at /workspace, where it starts. For work that needs programs: converting, counting, sorting, scripts in bash or Python, pipelines over many files. ' +
    'Not for reading, writing or searching single files: read, write, edit and search_files do that with checks and line numbers. ' +
    'There is no network, and no memory of the shell between calls: what must last is a file in /workspace (uploads/ can only be read); /tmp is gone when the turn ends. ' +
    'The result has the exit code, the time, and standard output and standard error together; of much output the beginning and the end. ' +
    'When its time is over, the command is killed with everything it has started. ' +
    'Inside, `concierge <tool> --argument value` calls your other tools, in pipes and scripts too; `concierge --help` lists them.',
  schema: z.strictObject({
    command: argument.min(1).describe('What bash shall run; several lines are fine.'),
    timeoutMs: timeoutArgument,
    background: backgroundArgument,
  }),
  sideEffect: 'writes',
  timeoutMs: callTimeoutMs,
  run: async ({ command, ...rest }, context) =>
    runCommand({ tool: 'bash', argv: ['bash', '-c', command], title: command, ...rest }, context),
});

const countBytes = (args: readonly string[]): number => args.reduce((sum, one) => sum + Buffer.byteLength(one), 0);

export const exec = defineTool({
  name: 'exec',
  domain: 'runtime',
  cs: 'never',
  description:
    'Runs one program with exactly these arguments in the same sandbox as bash: no shell, so nothing is expanded, split or quoted. ' +
    'For a program whose arguments hold spaces, quotes or other people’s words. For pipes, redirections, variables and globs use bash. ' +
    'Starts in /workspace; limits and result are those of bash.',
  schema: z.strictObject({
    program: argument
      .min(1)
      .refine((program) => !program.includes('='), 'must not contain =')
      .describe('A program on the sandbox’s PATH, such as python3, jq or convert, or the path of one.'),
    args: z
      .array(argument)
      .max(ARGUMENTS_MAX)
      .refine((args) => countBytes(args) <= ARGUMENTS_MAX_BYTES, `must not have more than ${String(ARGUMENTS_MAX_BYTES)} bytes together`)
      .describe('Its arguments, each as it shall arrive. [] for none.'),
    stdin: z.string().max(limits.fileMaxBytes).optional().describe('What it can read from standard input. Default: nothing.'),
    timeoutMs: timeoutArgument,
    background: backgroundArgument,
  }),
  sideEffect: 'writes',
  timeoutMs: callTimeoutMs,
  run: async ({ program, args, ...rest }, context) =>
    runCommand({ tool: 'exec', argv: [program, ...args], title: [program, ...args].join(' '), ...rest }, context),
});

interface AskedCommand {
  readonly tool: 'bash' | 'exec';
  readonly argv: SandboxCommand['argv'];
  readonly title: string;
  readonly stdin?: string | undefined;
  readonly timeoutMs?: number | undefined;
  readonly background?: boolean | undefined;
}

/** How long the call of a tool that runs a command may take. */
function callTimeoutMs({ timeoutMs, background }: { timeoutMs?: number | undefined; background?: boolean | undefined }): number {
  return (background === true ? 0 : (timeoutMs ?? limits.toolTimeoutMs)) + MARGIN_MS;
}

/** Runs the command to its end, or starts it in the background. @throws ToolError */
async function runCommand(asked: AskedCommand, context: ToolContext): Promise<string> {
  const caller = { callId: context.callId, tool: asked.tool };
  const { argv, stdin } = asked;
  const command = (defaultMs: number): SandboxCommand => ({
    argv,
    timeoutMs: asked.timeoutMs ?? defaultMs,
    ...(stdin !== undefined && { stdin }),
  });
  if (asked.background === true) {
    const title = clip(asked.title.replaceAll(/\s+/gu, ' ').trim(), TITLE_MAX_CHARACTERS);
    const { id } = await context.runtime.start(command(limits.turnTimeoutMs), { caller, title });
    return `Started in the background as ${id}. See what it says with process (action: output, id: ${id}); it is killed when the turn ends.`;
  }
  const { signal } = context;
  const onOutput = (chunk: string): void => context.progress(chunk);
  return describeResult(await context.runtime.run(command(limits.toolTimeoutMs), { caller, signal, onOutput }));
}

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
    return reportNews(id, context);
  },
});

function reportNews(id: string, { runtime }: ToolContext): string {
  const output = runtime.takeOutput(id);
  // The state is read after the output was taken: a reported end comes with all output before it.
  const command = runtime.list().find((one) => one.id === id);
  const state = command === undefined ? '' : describeState(command);
  const news = output === '' ? 'Nothing new was printed.' : keepEnds(output, limits.toolOutputModelMaxBytes - HEADING_BYTES);
  return `${id}: ${state}\n\n${news}`;
}

function listed({ runtime }: ToolContext): string {
  const commands = runtime.list();
  if (commands.length === 0) return 'No background commands have been started in this turn.';
  return commands.map((command) => `${command.id}: ${describeState(command)}: ${command.title}`).join('\n');
}

function describeState({ state, startedAtMs }: BackgroundCommand): string {
  switch (state.at) {
    case 'running':
      return `running for ${formatSeconds(Date.now() - startedAtMs)}`;
    case 'ended':
      return describeEnd(state.result);
    case 'failed':
      return `could not run: ${state.reason}`;
  }
}
