import type { Dispatcher, RuntimeView, TurnCapabilities } from '@concierge/agent';
import type { TurnRun } from '@concierge/turn';

/** A turn's sandbox, closed with the turn. */
export interface LentRuntime extends RuntimeView, AsyncDisposable {
  /** Who answers the tools that commands call; said once, before the first command. */
  answerWith(dispatcher: Dispatcher): void;
}

/** What a worker lends to one turn, and takes back at its end. */
export type LentCapabilities = TurnCapabilities & AsyncDisposable & { readonly runtime: LentRuntime };

/** All that capabilities are made from; bound once in wire.ts. */
export interface Lenders {
  runtime(run: TurnRun): LentRuntime;
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
