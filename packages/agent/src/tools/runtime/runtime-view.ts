import type { CommandResult, SandboxCommand } from '@concierge/sandbox';

/** A background command of this turn. */
export interface BackgroundCommand {
  /** As in `p1`; counted within the turn. */
  readonly id: string;
  readonly argv: readonly string[];
  readonly startedAtMs: number;
  /** Undefined while it runs. */
  readonly result: CommandResult | undefined;
}

/** The turn's sandbox: made with the first command, gone with the turn. */
export interface RuntimeView {
  /** @throws ToolError when there is no sandbox here */
  run(command: SandboxCommand, options: { readonly signal: AbortSignal; onOutput?(chunk: string): void }): Promise<CommandResult>;
  /** Starts a command that goes on beside the turn's other calls, until it ends, is killed, or the turn ends. */
  start(command: SandboxCommand): Promise<BackgroundCommand>;
  list(): readonly BackgroundCommand[];
  /** What it has said since the last time this was asked. @throws ToolError for an id that is none */
  takeOutput(id: string): string;
  kill(id: string): Promise<void>;
}
