/*
 * Why a running turn must stop: the reason of its AbortSignal.
 *   TurnCancelled   a caller cancelled it: its text is kept and the turn ends with `cancelled`
 *   TurnTimedOut    it ran longer than limits.turnTimeoutMs: it ends in an error
 *   WorkerDraining  SIGTERM and the grace is over: it continues in another worker after its last finished step
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
