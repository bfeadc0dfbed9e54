import { randomUUID } from 'node:crypto';
import { hashParts, redisPrefix } from '@concierge/runtime';

/**
 * Names in Redis. Everything carries one hash tag, so a script's keys are in one place of a Redis Cluster. What belongs
 * to a tenant is named the same in each slot: the connection (`findSlot`) puts the slot's own tag in its place.
 */
export const queuePrefix = redisPrefix;
/** The BullMQ queue of wake-ups for turns at this depth; BullMQ allows no colon in its name. */
export function wakeupQueueName(depth: number): string {
  return depth === 0 ? 'turns' : `turns-${String(depth)}`;
}

export const keyOf = {
  turn: (turnId: string): string => `${queuePrefix}:turn:${turnId}`,
  events: (turnId: string): string => `${queuePrefix}:events:${turnId}`,
  /** Ids of the turns of a session that have not ended, the running one first. */
  lane: (lane: Lane): string => `${queuePrefix}:lane:${laneMember(lane)}`,
  lease: (lane: Lane): string => `${queuePrefix}:lease:${laneMember(lane)}`,
  /**
   * Run id of the Redis for which the lanes have been enqueued from the inboxes; missing in a Redis that came back
   * empty.
   */
  enqueued: `${queuePrefix}:ready`,
  /** Bodies of the tenant's turns that are in a write-ahead log and have neither an inbox file nor an end. */
  logged: (tenantId: string): string => `${queuePrefix}:logged:${tenantId}`,
  /** Write-ahead logs whose records are acknowledged, by the service time at which their process was last heard of. */
  logs: `${queuePrefix}:logs`,
  /** Names the scan of the inboxes that is under way; lost with what it has enqueued. */
  restore: `${queuePrefix}:restore`,
  restoreLock: `${queuePrefix}:restore-lock`,
  scanLock: `${queuePrefix}:scan-lock`,
  /** Set by the first scan of an inbox that finds the turn without a lane. */
  seenWithoutLane: (turnId: string): string => `${queuePrefix}:seen-without-lane:${turnId}`,
  workers: `${queuePrefix}:workers`,
  /**
   * Lanes that a worker has leased and whose turn has not finished a step since: when the worker dies, one of them may
   * be the cause.
   */
  unproven: (workerId: string): string => `${queuePrefix}:unproven:${workerId}`,
  workerFacts: `${queuePrefix}:worker-facts`,
  /** How many slots the deployment has; missing: one, unless a process that runs has not announced its number yet. */
  slots: `${queuePrefix}:slots`,
  /** Held while the slots are changed. */
  slotsLock: `${queuePrefix}:slots-lock`,
  /** All processes of the deployment, by the time at which each was last heard of, and what each announces. */
  processes: `${queuePrefix}:processes`,
  processFacts: `${queuePrefix}:process-facts`,
  due: `${queuePrefix}:due`,
  /** A pool is a tenant's share at a depth (lua/lanes.lua): its lanes that wait for it, and those that have it. */
  line: (pool: string): string => `${queuePrefix}:line:${pool}`,
  admitted: (pool: string): string => `${queuePrefix}:admitted:${pool}`,
  share: `${queuePrefix}:share`,
  /** Pools whose lanes run when all inboxes have been scanned. */
  unopened: `${queuePrefix}:unopened`,
  /** Service time (lua/clock.lua). */
  clock: `${queuePrefix}:clock`,
  /** Lanes that wait for more messages before their first turn runs, by the time at which it does. */
  debounced: `${queuePrefix}:debounced`,
  /** Due work of a kind, by the time at which each piece is due; rebuilt from files (due/due.lua). */
  dueWork: (kind: string): string => `${queuePrefix}:due:${kind}`,
  /** Set together with all of a kind; missing in a Redis that came back empty. */
  dueComplete: (kind: string): string => `${queuePrefix}:due-complete:${kind}`,
  handoffScanLock: `${queuePrefix}:handoff-scan-lock`,
  deliveryScanLock: `${queuePrefix}:delivery-scan-lock`,
  deliveryRetentionLock: `${queuePrefix}:delivery-retention-lock`,
  /** Waiting messages of a conversation's outbox, by the service time at which a worker first saw each. */
  deliveriesSeen: (member: string): string => `${queuePrefix}:deliveries-seen:${member}`,
  /** Until when nothing is tried through a binding that the provider refuses. */
  bindingTried: (member: string): string => `${queuePrefix}:binding-tried:${member}`,
  /** The pace of a conversation or a binding. */
  pace: (member: string): string => `${queuePrefix}:pace:${member}`,
  /** Until when a binding waits because its provider asked for it. */
  throttledUntil: (member: string): string => `${queuePrefix}:pace-hold:${member}`,
  /** Receipts of a message that its sender has not yet recorded as sent. */
  earlyReceipts: (name: string): string => `${queuePrefix}:early-receipts:${name}`,
  /** The messages of a tenant that have early receipts, the oldest first. */
  earlyReceiptsOf: (tenantId: string): string => `${queuePrefix}:early-receipts-of:${tenantId}`,
  erasureScanLock: `${queuePrefix}:erasure-scan-lock`,
  series: (range: string): string => `${queuePrefix}:series:${range}`,
  /** How much waited of tenants, lately. */
  tenantSeries: `${queuePrefix}:tenant-series`,
  seriesLock: `${queuePrefix}:series-lock`,
  /** What each worker had done when the last sample was taken. */
  countedWorkers: `${queuePrefix}:counted-workers`,
  /** Set while operators have the worker take no turns. */
  drained: (workerId: string): string => `${queuePrefix}:drained:${workerId}`,
  keptLog: `${queuePrefix}:kept-log`,
  retentionScanLock: `${queuePrefix}:retention-scan-lock`,
  unansweredScanLock: `${queuePrefix}:unanswered-scan-lock`,
  /** How often the owner could not be told of a handoff, and when it is tried again. */
  alertTries: (handoffId: string): string => `${queuePrefix}:alert-tries:${handoffId}`,
  /** Set while a process is at the erasure of a contact. */
  erasing: (member: string): string => `${queuePrefix}:erasing:${member}`,
  eventScanLock: `${queuePrefix}:event-scan-lock`,
  eventClearLock: `${queuePrefix}:event-clear-lock`,
  /** Bytes that a tenant's turns have written to their streams, in one period. */
  streamBytes: (tenantId: string, portion: number): string => `${queuePrefix}:stream-bytes:${tenantId}:${String(portion)}`,
  /** Sessions that end where a caller's history ends, by time. */
  historyCursors: (name: string): string => `${queuePrefix}:history-cursors:${name}`,
  requests: (tenantId: string): string => `${queuePrefix}:requests:${tenantId}`,
  /**
   * What a tenant with a budget has spent, what its model calls under way have reserved, and which parts of its budgets
   * were reported (budgets/counters.lua).
   */
  budgetSpent: (tenantId: string): string => `${queuePrefix}:budget-spent:${tenantId}`,
  budgetHeld: (tenantId: string): string => `${queuePrefix}:budget-held:${tenantId}`,
  budgetReached: (tenantId: string): string => `${queuePrefix}:budget-reached:${tenantId}`,
  /** Models and providers that are not to be asked first for now (cooldowns/cool.lua). */
  coolingDown: `${queuePrefix}:cooling-down`,
  /** Set while one caller tries one of them. */
  cooldownProbe: (name: string): string => `${queuePrefix}:cooldown-probe:${name}`,
  /** Pub/sub: changes of those. */
  cooldowns: `${queuePrefix}:cooldowns`,
  /** Pub/sub: the entries of one turn, live. */
  live: (turnId: string): string => `${queuePrefix}:live:${turnId}`,
  /** Pub/sub: what changes of a tenant (`FeedChange`). */
  feed: (tenantId: string): string => `${queuePrefix}:feed:${tenantId}`,
  /** Pub/sub: records of tenants that a process has changed (`RecordChange`). */
  recordChanges: `${queuePrefix}:record-changes`,
  /** Pub/sub: ids of turns to cancel. */
  cancel: `${queuePrefix}:cancel`,
} as const;

/** Identifies the lane of one session. */
export interface Lane {
  readonly tenantId: string;
  readonly sessionId: string;
}

export function laneMember({ tenantId, sessionId }: Lane): string {
  return `${tenantId}/${sessionId}`;
}

const idHash = { separator: 'unit', digits: 32 } as const;

/**
 * A turn id is random, or derived where the channel or caller has an id of its own, so that the same message is the
 * same turn wherever it is accepted. `identity`: the identity of the tenant's scope.
 */
export function deriveTurnId(identity: string, dedupeId: string): string {
  return `t_${hashParts(['turn', identity, dedupeId], idHash)}`;
}

export function newTurnId(): string {
  // 122 random bits of a store that Node fills ahead: a call of `randomBytes` costs ten times as much.
  return `t_${randomUUID().replaceAll('-', '')}`;
}

/**
 * The 128-bit sender of an admin or anonymous session. Follows from the turn that starts it: accepted twice, it is one
 * session.
 */
export function deriveFreshSender(turnId: string): string {
  return hashParts(['sender', turnId], idHash);
}

export function isTurnId(text: string): boolean {
  return /^t_[0-9a-f]{32}$/u.test(text);
}
