import type { ToolAccess, TurnCapabilities } from '@concierge/agent';
import type { TurnRun } from '@concierge/turn';

/** What a worker lends to one turn, and takes back at its end. */
export type LentCapabilities = TurnCapabilities & AsyncDisposable;

/** What the turn's agent may do: at most this may be handed on. */
export interface TurnRights {
  readonly access: ToolAccess;
  /** Names of the tools that the turn has. */
  readonly tools: readonly string[];
}

/** All that capabilities are made from; bound once in wire.ts. */
export interface Lenders {
  runtime(run: TurnRun): TurnCapabilities['runtime'] & AsyncDisposable;
  web(run: TurnRun, rights: TurnRights): TurnCapabilities['web'];
  subagents(run: TurnRun, rights: TurnRights): TurnCapabilities['subagents'] & AsyncDisposable;
  /** Cancels what the turn has started, in whichever attempt, and is still on its way. */
  cancelSubagents(run: TurnRun): Promise<void>;
}

/** Nothing is opened before a tool asks for it. */
export function lendCapabilities(lenders: Lenders, run: TurnRun, rights: TurnRights): LentCapabilities {
  const runtime = lenders.runtime(run);
  const subagents = lenders.subagents(run, rights);
  return {
    runtime,
    web: lenders.web(run, rights),
    subagents,
    [Symbol.asyncDispose]: async () => {
      await subagents[Symbol.asyncDispose]();
      await runtime[Symbol.asyncDispose]();
    },
  };
}
