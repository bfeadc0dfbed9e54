/*
 * Why a running turn is told to stop: the reason of its AbortSignal.
 *   TurnCancelled   somebody asked for it: what was said is kept and the turn ends with `cancelled`
 *   TurnTimedOut    it ran longer than limits.turnTimeoutMs: it ends in an error
 *   WorkerDraining  SIGTERM and the grace is over: it goes on elsewhere after its last finished step
 *   LeaseLost       another worker has the session now: nothing this one does counts any more
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
