import { z } from 'zod';
import { defineTool } from '../tool.ts';
import { argument, backgroundArgument, callTimeoutMs, runCommand, timeoutArgument } from './run-command.ts';

export const bash = defineTool({
  name: 'bash',
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
