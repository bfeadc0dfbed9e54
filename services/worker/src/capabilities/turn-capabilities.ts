import type { TurnCapabilities } from '@concierge/agent';
import type { TurnRun } from '@concierge/turn';

/** What a worker lends to one turn, and takes back at its end. */
export type LentCapabilities = TurnCapabilities & AsyncDisposable;

/** All that capabilities are made from; bound once in wire.ts. */
export interface Lenders {
  runtime(run: TurnRun): TurnCapabilities['runtime'] & AsyncDisposable;
  web(run: TurnRun): TurnCapabilities['web'];
  subagents(run: TurnRun): TurnCapabilities['subagents'];
}

/** Nothing is opened before a tool asks for it. */
export function lendCapabilities(lenders: Lenders, run: TurnRun): LentCapabilities {
  const runtime = lenders.runtime(run);
  return {
    runtime,
    web: lenders.web(run),
    subagents: lenders.subagents(run),
    [Symbol.asyncDispose]: async () => runtime[Symbol.asyncDispose](),
  };
}
