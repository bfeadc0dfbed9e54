import type { AcceptedTurn, ErrorCode, TerminalEvent, TurnOutput, TurnStep } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';

/** One attempt at a turn: what `runTurn` gets. */
export interface TurnRun {
  readonly scope: TenantScope;
  readonly turn: AcceptedTurn;
  /** Starts so far, this one included. */
  readonly attempt: number;
  /** When the first attempt began. */
  readonly startedAtMs: number;
  /** What earlier attempts finished. */
  readonly steps: readonly TurnStep[];
  /** Text after the last finished step is already out: `text_reset` comes before anything else is said. Null when none is. */
  readonly reset: 'worker_lost' | null;
  /** Calls whose `tool_call_start` is out and whose result is not. */
  readonly openCalls: ReadonlySet<string>;
  /** Ids of the turns that wait behind this one in its session, the next one first. */
  waitingBehind(atMost: number): Promise<readonly string[]>;
  /** Reasons: TurnCancelled, TurnTimedOut, WorkerDraining, LeaseLost. */
  readonly signal: AbortSignal;
  readonly writer: TurnOutput;
}

/** Returned after the session file that contains the turn has been published; only then is the end announced. */
export interface TurnEnd {
  readonly event: TerminalEvent;
  /** The session contained the turn already: an earlier attempt published it, and readers may have been told something else since. */
  readonly isRepeated?: true;
  /** Turns that the session contains as answered together with this one. */
  readonly answered?: readonly string[];
}

/** How a worker runs turns: bound in its wire.ts. */
export interface TurnHandlers {
  runTurn(run: TurnRun): Promise<TurnEnd>;
  /** Saves the turn as failed, with this code, without running it. */
  failTurn(run: TurnRun, code: ErrorCode): Promise<TurnEnd>;
}
