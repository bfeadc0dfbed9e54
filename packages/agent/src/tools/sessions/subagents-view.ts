export interface ChildTask {
  readonly task: string;
  /** Name of the agent that does it; undefined: one like the asking agent, with fewer tools. */
  readonly agent: string | undefined;
}

/** What became of a task. Whether it went well or not: it is something to read, and no exception. */
export type ChildOutcome =
  | {
      readonly status: 'done';
      readonly turnId: string;
      readonly sessionId: string;
      /** The last thing it said. */
      readonly reply: string;
    }
  | {
      readonly status: 'failed' | 'cancelled';
      /** Null when it could not even be started. */
      readonly turnId: string | null;
      readonly sessionId: string | null;
      readonly reason: string;
    };

/** Turns that this turn starts, waits for and takes along when it ends. */
export interface SubagentsView {
  /** Agents that may be asked. */
  agents(): Promise<readonly { readonly name: string; readonly description: string }[]>;
  /**
   * Runs all tasks side by side; outcomes in their order. The same call of the same turn, made again after a crash, attaches to the same
   * children. @throws ToolError for an agent there is not, and for more tasks than may be
   */
  run(tasks: readonly ChildTask[], call: { readonly callId: string; readonly signal: AbortSignal }): Promise<readonly ChildOutcome[]>;
}
