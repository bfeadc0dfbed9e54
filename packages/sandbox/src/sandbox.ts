/** One command of an agent. */
export interface SandboxCommand {
  /** Program and arguments; nothing interprets them: a shell is asked for by name. */
  readonly argv: readonly [string, ...string[]];
  /** Relative to the workspace. Default: the workspace itself. */
  readonly cwd?: string;
  readonly stdin?: string;
  readonly timeoutMs: number;
}

/**
 * How a command came to its end. `timed_out`: its time was over; `stopped`: the caller's signal; `out_of_memory`: the limit of the
 * sandbox; `out_of_space`: the budget of the workspace (see `BudgetedSandbox`). After each of these four nothing that it started runs any more.
 */
export type CommandEnd =
  | { readonly kind: 'exited'; readonly exitCode: number }
  | { readonly kind: 'signalled'; readonly signal: string }
  | { readonly kind: 'timed_out' | 'stopped' | 'out_of_memory' | 'out_of_space' };

export interface CommandResult {
  readonly end: CommandEnd;
  /** Standard output and standard error as they came, as text; head and tail when there was too much, with a line in between that says so. */
  readonly output: string;
  /** Of the whole output, the left-out middle included. */
  readonly outputBytes: number;
  readonly durationMs: number;
  /** The workspace was over its budget before the command began, which could therefore remove and not write. */
  readonly overBudget?: WorkspaceUse;
}

export interface WorkspaceUse {
  readonly usedBytes: number;
  readonly maxBytes: number;
}

export interface RunOptions {
  readonly signal: AbortSignal;
  /** Each piece of output as it comes, up to the same cap as the result. */
  readonly onOutput?: (chunk: string) => void;
}

/** What a sandbox is made for. Fixed when it is opened: nothing a tenant can reach changes it. */
export interface SandboxRequest {
  readonly tenantId: string;
  readonly turnId: string;
  /** Names the process that opened it, for the reaper: its sandboxes may go when it is gone. */
  readonly ownerId: string;
  /** The tenant's folder on this machine: the workspace. */
  readonly root: string;
  /** Names at the top of the workspace that are not to be seen. */
  readonly masked: readonly string[];
  /** Names at the top of the workspace that can be read only. */
  readonly readOnly: readonly string[];
  /** A folder on this machine with the dispatcher's socket in it; undefined: no dispatcher. */
  readonly dispatcherFolder: string | undefined;
}

/** One turn's sandbox. Made with the first `run`, not before; everything in it ends with it. */
export interface Sandbox extends AsyncDisposable {
  /**
   * Runs a command to its end; several may run at once. What the command does wrong is in the result.
   * @throws SandboxUnavailable when the engine cannot make or keep the sandbox
   */
  run(command: SandboxCommand, options: RunOptions): Promise<CommandResult>;
}

/** The port: all sandboxes of one worker. Sides: Docker and bubblewrap. */
export interface Sandboxes {
  readonly kind: 'docker' | 'bubblewrap';
  open(request: SandboxRequest): Sandbox;
  /** Removes what processes that are gone left behind; how many. `isAlive` is asked once per owner. */
  reap(isAlive: (ownerId: string) => Promise<boolean>): Promise<number>;
  /** For start and readiness. @throws SandboxUnavailable saying what is missing */
  check(): Promise<void>;
  close(): Promise<void>;
}

/** There is no sandbox to be had: no engine, no image, no rights. The message is for operators and for the model: nothing internal in it. */
export class SandboxUnavailable extends Error {
  override readonly name = 'SandboxUnavailable';
}
