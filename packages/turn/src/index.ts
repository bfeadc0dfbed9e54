export type { TurnReceipt } from './accept.ts';
export { Doorbells } from './doorbells.ts';
export { DueQueue, type DueClaim, type DueKey, type DueQueueOptions } from './due/due-queue.ts';
export { DueWorker } from './due/due-worker.ts';
export { Reconciler } from './due/reconciler.ts';
export { endOf } from './ended-turn.ts';
export { EventQueue } from './events/event-queue.ts';
export { EventSender, eventFetchPolicy, testMessage, type SentEvent } from './events/event-sender.ts';
export { EventReconciler } from './events/event-reconciler.ts';
export { EventWorker } from './events/event-worker.ts';
export { tellDeliveries } from './events/tell-deliveries.ts';
export {
  handoffRequested,
  heartbeatReported,
  messageState,
  scheduleCompleted,
  scheduleFailing,
  scheduleMissed,
  turnEnded,
  turnWarned,
  type EndedRun,
  type MessageState,
} from './events/happenings.ts';
export { OutgoingEvents } from './events/outgoing-events.ts';
export { TurnFold, type FoldedTurn } from './fold-events.ts';
export { forgetTenant } from './forget-tenant.ts';
export { foldStream, type FoldedStream } from './fold-steps.ts';
export { CODE_MIN_CHARACTERS, codeOf, commandMark, HandoffCalls, type HandoffCallsOptions } from './handoff-calls.ts';
export { HandoffDesk, type HandoffDeskOptions, type PersonsWords } from './handoff-desk.ts';
export { HandoffWatch } from './handoff-watch.ts';
export { HistoryMarks, type HistoryMark } from './history-marks.ts';
export { Lanes, type Lease, type Ring } from './lanes.ts';
export { doorbellQueueOf, keyOf, queuePrefix } from './keys.ts';
export { RateLimits, type RateLimitState } from './rate-limits.ts';
export { LeaseLost, TurnCancelled, TurnTimedOut, WorkerDraining } from './stop-reasons.ts';
export { Sweeper } from './sweeper.ts';
export { removeTenant, type TenantRemovalOptions } from './remove-tenant.ts';
export { readRendered } from './stream-entry.ts';
export type { FollowSink } from './turn-follower.ts';
export { StreamBytes } from './stream-bytes.ts';
export { TurnStreams } from './turn-streams.ts';
export { Turns, type TurnViewer } from './turns.ts';
export { TurnWorker, type TurnWorkerOptions } from './turn-worker.ts';
export type { TurnEnd, TurnHandlers, TurnRun } from './turn-run.ts';
export { DeliveryPace, type PaceRules } from './deliveries/delivery-pace.ts';
export { DeliveryReceipts, type DeliveryReceipt, type DeliveryTold } from './deliveries/delivery-receipts.ts';
export { DeliveryReconciler } from './deliveries/delivery-reconciler.ts';
export {
  DeliveryWorker,
  dueKeyOf,
  openDeliveryQueue,
  outboxBellOf,
  type DeliverNext,
  type LaneStep,
} from './deliveries/delivery-worker.ts';
