import { limits } from '@concierge/contract';
import { z } from 'zod';
import { defineTool } from '../tool.ts';
import { argument, backgroundArgument, callTimeoutMs, runCommand, timeoutArgument } from './run-command.ts';

const ARGUMENTS_MAX = 1000;
/** Of the 2 MiB that Linux takes in all. */
const ARGUMENTS_MAX_BYTES = 1_000_000;

const bytesOf = (args: readonly string[]): number => args.reduce((sum, one) => sum + Buffer.byteLength(one), 0);

export const exec = defineTool({
  name: 'exec',
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
      .refine((args) => bytesOf(args) <= ARGUMENTS_MAX_BYTES, `must not have more than ${String(ARGUMENTS_MAX_BYTES)} bytes together`)
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
