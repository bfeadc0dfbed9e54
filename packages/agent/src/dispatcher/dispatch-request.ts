import { z } from 'zod';

/** What the `concierge` program in a sandbox sends: its command line, and what it read from standard input if that was asked for. */
export const DispatchRequest = z.strictObject({
  /** Names the command that it was started by; given to that command when it began. */
  command: z.string(),
  argv: z.array(z.string()).max(4096),
  stdin: z.string().nullable(),
});
export type DispatchRequest = z.infer<typeof DispatchRequest>;

/** 0: the tool has answered; 1: with an error. 2: the command line is wrong. 3: nobody is there to answer. 4: too many calls. */
export const exitCodes = { ok: 0, toolError: 1, usage: 2, notConnected: 3, refused: 4 } as const;

export interface DispatchReply {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

export function printed(text: string): DispatchReply {
  return { exitCode: exitCodes.ok, stdout: withNewline(text), stderr: '' };
}

export function refused(exitCode: number, text: string): DispatchReply {
  return { exitCode, stdout: '', stderr: withNewline(`concierge: ${text}`) };
}

export function withNewline(text: string): string {
  return text === '' || text.endsWith('\n') ? text : `${text}\n`;
}
