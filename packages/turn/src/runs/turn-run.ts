import type { AcceptedTurn, ErrorCode, TerminalEvent, TurnOutput, TurnStep } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';

/** One attempt at a turn: the argument of `runTurn`. */
export interface TurnRun {
  readonly scope: TenantScope;
  readonly turn: AcceptedTurn;
  /** The number of starts so far, this one included. */
  readonly attempt: number;
  /** When the first attempt began. */
  readonly startedAtMs: number;
  /** When the wake-up was sent that led to this attempt: since then the turn could have run. Undefined: not known. */
  readonly wokenAtMs?: number | undefined;
  /** The steps that earlier attempts finished. */
  readonly steps: readonly TurnStep[];
  /**
   * Set when text after the last finished step is already in the stream: `text_reset` comes before any other event.
   * Null when there is no such text.
   */
  readonly reset: 'worker_lost' | null;
  /** Calls whose `tool_call_start` is in the stream and whose result is not. */
  readonly openCalls: ReadonlySet<string>;
  /** Ids of the turns that wait behind this one in its session, the next one first. */
  waitingBehind(atMost: number): Promise<readonly string[]>;
  /**
   * To be called before each model call. @throws WorkerDraining when another worker is to make it; every step so far is
   * in the stream then, and none is done again
   */
  handOn(): Promise<void>;
  /** Reasons: TurnCancelled, TurnTimedOut, WorkerDraining, LeaseLost. */
  readonly signal: AbortSignal;
  readonly writer: TurnOutput;
}

/** Returned after the session file that contains the turn has been published; only then is the end announced. */
export interface TurnEnd {
  readonly event: TerminalEvent;
  /**
   * The session contained the turn already: an earlier attempt published it, and readers may have seen other text
   * since.
   */
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

/*
 * Why a running turn must stop: the reason of its AbortSignal.
 *   TurnCancelled   a caller cancelled it: its text is kept and the turn ends with `cancelled`
 *   TurnTimedOut    it ran longer than limits.turnTimeoutMs: it ends in an error
 *   WorkerDraining  SIGTERM and the grace is over: it continues in another worker after its last finished step; thrown
 *                   by handOn() in the second half of the grace
 *   LeaseLost       another worker has the lane now: writes of this one are refused
 */
export class TurnCancelled extends Error {
  override readonly name = 'TurnCancelled';
}
export class TurnTimedOut extends Error {
  override readonly name = 'TurnTimedOut';
}
export class WorkerDraining extends Error {
  override readonly name = 'WorkerDraining';
}
export class LeaseLost extends Error {
  override readonly name = 'LeaseLost';
}
