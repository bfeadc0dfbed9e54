import type { CommandResult, RunOptions, Sandbox, SandboxCommand, WorkspaceUse } from './sandbox.ts';

/** Measures the use of the workspace. */
export interface WorkspaceBudget {
  look(): Promise<WorkspaceUse>;
  /** undefined when the signal aborts before the budget is used up. */
  untilOver(signal: AbortSignal): Promise<WorkspaceUse | undefined>;
}

/**
 * A sandbox whose workspace has a budget of bytes. The use is measured before each command and while commands run: a
 * command that exceeds the budget is ended, and until the workspace is below it again commands can remove, and write
 * nothing. The excess is what was written between two measurements (README).
 */
export class BudgetedSandbox implements Sandbox {
  readonly #sandbox: Sandbox;
  readonly #budget: WorkspaceBudget;

  constructor(sandbox: Sandbox, budget: WorkspaceBudget) {
    this.#sandbox = sandbox;
    this.#budget = budget;
  }

  async run(command: SandboxCommand, options: RunOptions): Promise<CommandResult> {
    const before = await this.#budget.look();
    if (before.usedBytes < before.maxBytes) return this.#runWatched(command, options);
    return { ...(await this.#sandbox.run(withoutWriting(command), options)), overBudget: before };
  }

  async #runWatched(command: SandboxCommand, options: RunOptions): Promise<CommandResult> {
    const [over, ended] = [new AbortController(), new AbortController()];
    const watching = this.#budget.untilOver(ended.signal).then((use) => {
      if (use !== undefined) over.abort(new Error('the workspace is over its budget'));
      return use;
    });
    try {
      const result = await this.#sandbox.run(command, { ...options, signal: AbortSignal.any([options.signal, over.signal]) });
      ended.abort();
      const isStopped = result.end.kind === 'stopped' && !options.signal.aborted && (await watching) !== undefined;
      return isStopped ? { ...result, end: { kind: 'out_of_space' } } : result;
    } finally {
      ended.abort();
      // A failed measurement is reported by the next one.
      await watching.catch(() => undefined);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#sandbox[Symbol.asyncDispose]();
  }
}

/**
 * A hard limit on the size of files, which nothing that the command starts can raise: removing, and making empty ones,
 * goes on. The signal is ignored, so that a program gets "File too large" from its write instead of being killed by it.
 */
function withoutWriting(command: SandboxCommand): SandboxCommand {
  return { ...command, argv: ['sh', '-c', 'trap "" XFSZ; ulimit -f 0 && exec "$@"', 'sh', ...command.argv] };
}
