import { limits } from '@concierge/contract';

/**
 * What one turn's sandbox may use. Where something is counted for each command or process instead, the adapter's README
 * says so.
 */
export interface SandboxLimits {
  /** Processes and threads at the same time. */
  readonly pids: number;
  /** All processes and /tmp together; there is no swap. */
  readonly memoryBytes: number;
  readonly cpus: number;
  readonly tmpBytes: number;
  /** Size of any one file. */
  readonly fileBytes: number;
  /** The limit of each process. */
  readonly openFiles: number;
  /** The kept size of one command's output; the middle of longer output is left out. */
  readonly outputBytes: number;
}

const MiB = 1024 * 1024;

export const defaultLimits: SandboxLimits = {
  pids: 256,
  memoryBytes: 1024 * MiB,
  cpus: 1,
  tmpBytes: 256 * MiB,
  fileBytes: 512 * MiB,
  openFiles: 1024,
  outputBytes: limits.toolOutputModelMaxBytes,
};

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
 * How a command ended. `timed_out`: its time was over; `stopped`: the caller's signal; `out_of_memory`: the limit of
 * the sandbox; `out_of_space`: the budget of the workspace (see `BudgetedSandbox`). After each of these four nothing
 * that it started runs any more.
 */
export type CommandEnd =
  | { readonly kind: 'exited'; readonly exitCode: number }
  | { readonly kind: 'signalled'; readonly signal: string }
  | { readonly kind: 'timed_out' | 'stopped' | 'out_of_memory' | 'out_of_space' };

export interface CommandResult {
  readonly end: CommandEnd;
  /**
   * Standard output and standard error in order, as text; head and tail when there was too much, with a line in between
   * that states it.
   */
  readonly output: string;
  /** The size of the whole output, the left-out middle included. */
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

/** The purpose and paths of a sandbox. Fixed when it is opened: nothing a tenant can reach changes it. */
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
   * Runs a command to its end; several may run at once. A failure of the command itself is in the result.
   * @throws SandboxUnavailable when the engine cannot make or keep the sandbox
   */
  run(command: SandboxCommand, options: RunOptions): Promise<CommandResult>;
}

/** The port: all sandboxes of one worker. Adapters: Docker and bubblewrap. */
export interface Sandboxes {
  readonly kind: 'docker' | 'bubblewrap';
  open(request: SandboxRequest): Sandbox;
  /** Removes the sandboxes of dead processes and returns their number. `isAlive` is asked once per owner. */
  reap(isAlive: (ownerId: string) => Promise<boolean>): Promise<number>;
  /** Checks the engine, for start and readiness. @throws SandboxUnavailable naming what is missing */
  check(): Promise<void>;
  close(): Promise<void>;
}

/**
 * There is no sandbox to be had: no engine, no image, no rights. The message is for operators and for the model:
 * nothing internal in it.
 */
export class SandboxUnavailable extends Error {
  override readonly name = 'SandboxUnavailable';
}

/** The commands of one sandbox that run now: none begins once it is closing, and those that run are stopped. */
export class RunningCommands {
  readonly #closing = new AbortController();
  readonly #running = new Set<Promise<CommandResult>>();

  /** `run` is given a signal that closing aborts as well. @throws SandboxUnavailable when it was closed */
  async run(options: RunOptions, run: (options: RunOptions) => Promise<CommandResult>): Promise<CommandResult> {
    if (this.#closing.signal.aborted) throw new SandboxUnavailable('The sandbox has been closed.');
    const running = run({ ...options, signal: AbortSignal.any([options.signal, this.#closing.signal]) });
    this.#running.add(running);
    try {
      return await running;
    } finally {
      this.#running.delete(running);
    }
  }

  stop(): void {
    this.#closing.abort();
  }

  /** Resolves when all have ended. */
  async ended(): Promise<void> {
    await Promise.allSettled(this.#running);
  }
}
