import type { CommandResult, SandboxCommand } from '@concierge/sandbox';

/** The tool call that a command runs for: what it calls through the dispatcher is noted there, and ends with it. */
export interface CommandCaller {
  readonly callId: string;
  readonly tool: string;
}

/** running → ended, with its result or because it was killed; or → failed, when the sandbox could not run it. */
export type BackgroundState =
  | { readonly at: 'running' }
  | { readonly at: 'ended'; readonly result: CommandResult }
  | { readonly at: 'failed'; readonly reason: string };

/** A background command of this turn. */
export interface BackgroundCommand {
  /** As in `p1`; counted within the turn. */
  readonly id: string;
  /** What a user would have typed, shortened. */
  readonly title: string;
  readonly startedAtMs: number;
  readonly state: BackgroundState;
}

export interface CommandOptions {
  readonly caller: CommandCaller;
  readonly signal: AbortSignal;
  readonly onOutput?: (chunk: string) => void;
}

export interface BackgroundStart {
  readonly caller: CommandCaller;
  readonly title: string;
}

/** The turn's sandbox: made with the first command, gone with the turn. */
export interface RuntimeAccess {
  /** @throws ToolError when there is no sandbox here */
  run(command: SandboxCommand, options: CommandOptions): Promise<CommandResult>;
  /**
   * Starts a command that goes on beside the turn's other calls, until it ends, is killed, or the turn ends.
   * @throws ToolError
   */
  start(command: SandboxCommand, start: BackgroundStart): Promise<BackgroundCommand>;
  list(): readonly BackgroundCommand[];
  /** What it has printed since the last time this was asked. @throws ToolError for an id that is none */
  takeOutput(id: string): string;
  /**
   * Resolves when it has ended, has printed output that was not taken yet, or the signal is aborted.
   * @throws ToolError for an id that is none
   */
  waitFor(id: string, signal: AbortSignal): Promise<void>;
  /** Ends it with everything that it started. @throws ToolError for an id that is none */
  kill(id: string): Promise<void>;
}
