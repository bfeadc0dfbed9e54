export type { TurnReceipt } from './accept.ts';
export { WakeupQueue } from './wakeup-queue.ts';
export { DueQueue, type DueClaim, type DueKey, type DueQueueOptions } from './due/due-queue.ts';
export { DueWorker } from './due/due-worker.ts';
export { Reconciler } from './due/reconciler.ts';
export { endOf } from './replay-turn.ts';
export { EventQueue } from './events/event-queue.ts';
export { EventSender, eventFetchPolicy, testMessage, type SentEvent } from './events/event-sender.ts';
export { EventReconciler } from './events/event-reconciler.ts';
export { EventWorker } from './events/event-worker.ts';
export { emitDeliveries } from './events/emit-deliveries.ts';
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
} from './events/webhook-event-factories.ts';
export { WebhookEvents } from './events/webhook-events.ts';
export { TurnFold, type FoldedTurn } from './fold-events.ts';
export { forgetTenant } from './forget-tenant.ts';
export { foldStream, type FoldedStream } from './fold-steps.ts';
export {
  CODE_MIN_CHARACTERS,
  codeOf,
  commandMark,
  HandoffNotifications,
  type HandoffNotificationsOptions,
} from './handoff-notifications.ts';
export { HandoffRequests, type HandoffRequestsOptions, type StaffMessage } from './handoff-requests.ts';
export { HandoffReconciler } from './handoff-reconciler.ts';
export { HistoryCursors, type HistoryCursor } from './history-cursors.ts';
export { Lanes, type Lease, type Wakeup } from './lanes.ts';
export { wakeupQueueName, keyOf, queuePrefix } from './keys.ts';
export { RateLimits, type RateLimitState } from './rate-limits.ts';
export { LeaseLost, TurnCancelled, TurnTimedOut, WorkerDraining } from './stop-reasons.ts';
export { TurnReconciler } from './turn-reconciler.ts';
export { RemovedTenants, removeTenant, type TenantRemovalOptions } from './remove-tenant.ts';
export { readRendered } from './stream-entry.ts';
export type { FollowSink } from './turn-follower.ts';
export { StreamBytes } from './stream-bytes.ts';
export { TurnStreams } from './turn-streams.ts';
export { Turns, type TurnViewer } from './turns.ts';
export { TurnWorker, type TurnWorkerOptions } from './turn-worker.ts';
export type { TurnEnd, TurnHandlers, TurnRun } from './turn-run.ts';
export { DeliveryPace, type PaceRules } from './deliveries/delivery-pace.ts';
export { DeliveryReceipts, type DeliveryReceipt, type DeliveryReported } from './deliveries/delivery-receipts.ts';
export { DeliveryReconciler } from './deliveries/delivery-reconciler.ts';
export {
  DeliveryWorker,
  dueKeyOf,
  openDeliveryQueue,
  outboxBellOf,
  type DeliverNext,
  type LaneStep,
} from './deliveries/delivery-worker.ts';
