export interface ChildTask {
  readonly task: string;
  /** Name of the agent that does it; undefined: one like the asking agent, with fewer tools. */
  readonly agent: string | undefined;
}

export type ChildOutcome =
  | { readonly status: 'done'; readonly turnId: string; readonly sessionId: string; readonly reply: string }
  | { readonly status: 'failed' | 'cancelled'; readonly turnId: string; readonly sessionId: string; readonly reason: string };

/** Turns that this turn starts, waits for and takes along when it is cancelled. */
export interface SubagentsView {
  /** Agents that may be asked. */
  agents(): Promise<readonly { readonly name: string; readonly description: string }[]>;
  /** Runs all tasks side by side. The same call of the same turn, made again after a crash, attaches to the same children. @throws ToolError */
  run(tasks: readonly ChildTask[], call: { readonly callId: string; readonly signal: AbortSignal }): Promise<readonly ChildOutcome[]>;
}
