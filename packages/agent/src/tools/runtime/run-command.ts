import { limits } from '@concierge/contract';
import type { SandboxCommand } from '@concierge/sandbox';
import { z } from 'zod';
import { clip } from '../cut-text.ts';
import type { ToolContext } from '../tool-context.ts';
import { describeResult } from './command-result.ts';

const ARGUMENT_MAX_BYTES = 120_000;
const TITLE_MAX_CHARACTERS = 120;
/** For making the sandbox before, and for killing everything after: the sandbox itself ends the command when its time is over. */
const MARGIN_MS = 30_000;

/** One argument of a program, as the system takes it: Linux has room for 128 KiB in each. */
export const argument = z
  .string()
  .refine((text) => !text.includes('\0'), 'must not contain a NUL character')
  .refine(
    (text) => Buffer.byteLength(text) <= ARGUMENT_MAX_BYTES,
    `must not be longer than ${String(ARGUMENT_MAX_BYTES)} bytes; put it into a file`,
  );

export const timeoutArgument = z
  .int()
  .min(1)
  .max(limits.toolTimeoutMaxMs)
  .optional()
  .describe(
    `Milliseconds after which the command is killed. Default ${String(limits.toolTimeoutMs)}, at most ${String(limits.toolTimeoutMaxMs)}; in the background the default is the rest of the turn.`,
  );

export const backgroundArgument = z
  .boolean()
  .optional()
  .describe('Start it and go on at once: the result is an id for the process tool. It ends with the turn at the latest.');

export interface AskedCommand {
  readonly tool: 'bash' | 'exec';
  readonly argv: SandboxCommand['argv'];
  readonly title: string;
  readonly stdin?: string | undefined;
  readonly timeoutMs?: number | undefined;
  readonly background?: boolean | undefined;
}

/** How long the call of a tool that runs a command may take. */
export function callTimeoutMs({ timeoutMs, background }: { timeoutMs?: number | undefined; background?: boolean | undefined }): number {
  return (background === true ? 0 : (timeoutMs ?? limits.toolTimeoutMs)) + MARGIN_MS;
}

/** Runs it to its end, or starts it. @throws ToolError */
export async function runCommand(asked: AskedCommand, context: ToolContext): Promise<string> {
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
