export { Budgets, budgetSpentNotice, hasBudget, type TurnBudget } from './budgets/budgets.ts';
export { Cooldowns } from './cooldowns/cooldowns.ts';
export type { TurnReceipt } from './lanes/duplicates.ts';
export { WakeupQueue, type Wakeup } from './lanes/wakeup-queue.ts';
export { DueQueue, type DueClaim, type DueKey, type DueQueueOptions } from './due/due-queue.ts';
export { DueWorker } from './due/due-worker.ts';
export { Reconciler, unhurried, type OnRepaired } from './due/reconciler.ts';
export { toEndEvent } from './streams/stream-entry.ts';
export { UnansweredHandoffs, type UnansweredEmail } from './handoffs/unanswered-handoffs.ts';
export { RetentionReconciler } from './retention/retention-reconciler.ts';
export { continueErasure, eraseContact, ErasureReconciler, type ErasureOptions } from './erasure/erase-contact.ts';
export { EventQueue, EventReconciler } from './events/event-queue.ts';
export { EventSender, eventFetchPolicy, testMessage, type SentEvent } from './events/event-sender.ts';
export { EventWorker } from './events/event-worker.ts';
export {
  emitDeliveries,
  WebhookEvents,
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
} from './events/webhook-events.ts';
export { TurnFold, type FoldedTurn, foldStream, type FoldedStream } from './streams/fold-stream.ts';
export { forgetTenant, RemovalReconciler, removeTenant, type TenantRemovalOptions } from './remove-tenant.ts';
export {
  CODE_MIN_CHARACTERS,
  buildHandoffCode,
  findCommandPrefix,
  HandoffNotifications,
  type HandoffNotificationsOptions,
  HandoffReconciler,
} from './handoffs/handoff-notifications.ts';
export { HandoffRequests, type HandoffRequestsOptions, type StaffMessage } from './handoffs/handoff-requests.ts';
export { HistoryCursors, type HistoryCursor } from './streams/history-cursors.ts';
export { Lanes, type Lease } from './lanes/lanes.ts';
export { wakeupQueueName, keyOf, queuePrefix } from './keys.ts';
export { canSendEmail, ProcessAnnouncement, readClocks, readRunningProcesses, type ProcessFacts } from './running-processes.ts';
export { hearRecordChanges, tellRecordChanges } from './record-changes.ts';
export { RateLimits, type RateLimitState } from './rate-limits.ts';
export { LeaseLost, TurnCancelled, TurnTimedOut, WorkerDraining } from './runs/turn-run.ts';
export { traceRecord } from './traces/build-trace.ts';
export { agreeOnSlots, assertSlots, isEmptyRedis } from './agree-on-slots.ts';
export { listTurnReconcilers, TurnReconciler } from './lanes/turn-reconciler.ts';
export { WaitingRoom, type WaitingLook, type WaitingTurns } from './waiting/waiting-turns.ts';
export { sumTenants, sumWaiting, viewOverview, viewWaiting, viewWorker } from './waiting/waiting-views.ts';
export { setDrained } from './waiting/drained-workers.ts';
export { readWorkers, type ReportedWorker, type WorkerReport } from './waiting/workers.ts';
export { LoadSeries } from './waiting/load-series.ts';
export { LogKeeper, readKeptLog, type LogQuery } from './waiting/kept-log.ts';
export { addCounts, bucketEndsMs, estimateQuantile, noCounts, type TurnCounts } from './waiting/turn-counts.ts';
export { readRendered } from './streams/stream-entry.ts';
export type { FollowSink } from './streams/turn-follower.ts';
export { StreamBytes } from './streams/stream-bytes.ts';
export { TenantFeeds, tellFeeds, type FeedReader } from './streams/tenant-feeds.ts';
export { TurnStreams } from './streams/turn-streams.ts';
export { Turns, type TurnViewer } from './turns.ts';
export { TurnWorker, type TurnWorkerOptions } from './runs/turn-worker.ts';
export type { TurnEnd, TurnHandlers, TurnRun } from './runs/turn-run.ts';
export { DeliveryPace, type PaceRules } from './deliveries/delivery-pace.ts';
export { DeliveryReceipts, type DeliveryReceipt, type DeliveryReported } from './deliveries/delivery-receipts.ts';
export {
  DeliveryReconciler,
  DeliveryWorker,
  toDueKey,
  openDeliveryQueue,
  wakeOutboxBy,
  type DeliverNext,
  type LaneStep,
} from './deliveries/delivery-worker.ts';
export { LogRecovery } from './wal/log-recovery.ts';
export { ProcessLog } from './wal/process-log.ts';
export { askInTime, fileUnanswered, LogsOnDisk } from './wal/log-records.ts';
export { SharedLogs } from './wal/shared-logs.ts';
