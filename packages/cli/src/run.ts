import type { Writable } from 'node:stream';
import { AppError } from '@concierge/contract';
import { CommanderError, type Command } from 'commander';
import { printAnswer, type Answer } from './answer.ts';
import type { Config } from './config.ts';
import { Deployment } from './deployment.ts';
import { failureLine, describeFailure } from './failure.ts';
import { createProgram } from './program.ts';

export interface RunOptions {
  /** @throws ConfigError */
  readonly readConfig: () => Config;
  readonly out: Writable;
  readonly err: Writable;
}

/** Help and version are no failures; a wrong command line is one. */
function rethrowUsage(error: unknown): void {
  if (!(error instanceof CommanderError)) throw error;
  if (error.exitCode !== 0) throw new AppError('invalid_request', error.message.replace(/^error: /u, ''), { cause: error });
}

/** Every command, the nested ones too: commander hands its settings down only to commands that it makes itself. */
function configure(command: Command, { out, json }: { readonly out: Writable; readonly json: boolean }): void {
  // Its own message is thrown as well, and printed once, by us.
  command
    .exitOverride()
    .configureOutput({ writeOut: (text) => void out.write(text), writeErr: () => undefined, getOutHasColors: () => !json });
  for (const sub of command.commands) configure(sub, { out, json });
}

/** One command from its arguments to its exit code: 0 done, 1 not done or found wanting. Never rejects. */
export async function run(args: readonly string[], { readConfig, out, err }: RunOptions): Promise<0 | 1> {
  const json = args.includes('--json');
  let deployment: Deployment | undefined;
  try {
    deployment = new Deployment(readConfig());
    const answers: Answer[] = [];
    const program = await createProgram({ deployment, answer: (answer) => answers.push(answer) }, args);
    configure(program, { out, json });
    await program.parseAsync(args, { from: 'user' }).catch(rethrowUsage);
    for (const answer of answers) printAnswer(answer, { json, out });
    return answers.some(({ failed }) => failed === true) ? 1 : 0;
  } catch (error) {
    err.write(json ? `${JSON.stringify(describeFailure(error))}\n` : `concierge: ${failureLine(error)}\n`);
    return 1;
  } finally {
    await deployment?.close();
  }
}
