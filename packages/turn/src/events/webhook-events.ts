import {
  channelDefinitions,
  DAY_MS,
  type DeliveryState,
  type EventType,
  type AcceptedTurn,
  type BudgetReached,
  type MessagingChannel,
  type Handoff,
  type Schedule,
  type ScheduleRun,
  type TurnRecord,
  type TurnWarning,
} from '@concierge/contract';
import { background, failpoint, type Log } from '@concierge/runtime';
import { Delivery, type WebhookEventInput, type KeptEvent, type TenantScope } from '@concierge/tenant';
import type { EventQueue } from './event-queue.ts';
import type { DeliveryReported } from '../deliveries/delivery-receipts.ts';

export interface WebhookEventsOptions {
  readonly queue: Pick<EventQueue, 'add'>;
  readonly log: Log;
}

/** Notifies a tenant's own systems: a file first, then a wake-up. A lost wake-up costs seconds and nothing else. */
export class WebhookEvents {
  readonly #options: WebhookEventsOptions;

  constructor(options: WebhookEventsOptions) {
    this.#options = options;
  }

  /** Emits an event to every endpoint that subscribes to it; it is on disk when this returns. */
  async emit<Type extends EventType>(scope: TenantScope, webhookEvent: WebhookEventInput<Type>): Promise<void> {
    const events = await scope.events.emit(webhookEvent);
    if (events.length > 0) this.wakeSoon(scope, events);
  }

  /**
   * Emits an event to one URL, which has an endpoint.
   * @returns the id of the event.
   * @throws AppError conflict when no endpoint with this URL can be sent to
   */
  async emitTo<Type extends EventType>(scope: TenantScope, url: string, webhookEvent: WebhookEventInput<Type>): Promise<string> {
    const event = await scope.events.emitTo(url, webhookEvent);
    this.wakeSoon(scope, [event]);
    return event.id;
  }

  /** As `wake`, without waiting for Redis: the events are on disk, and the reconciler finds what was not woken. */
  wakeSoon(scope: TenantScope, events: readonly KeptEvent[]): void {
    background(this.wake(scope, events), this.#options.log);
  }

  /** Wakes workers for waiting events, whichever process wrote them. */
  async wake({ tenantId }: TenantScope, events: readonly KeptEvent[]): Promise<void> {
    await failpoint('events.before-wake-up');
    for (const [endpointId, some] of Map.groupBy(events, (event) => event.endpointId)) {
      const planned = some.map(({ id }) => ({ id, delayMs: 0 }));
      await this.#options.queue.add({ tenantId, name: endpointId }, planned);
    }
    await failpoint('events.after-wake-up');
  }
}

/** Emits an event for each message that has arrived or will not. @throws the error of the disk */
export function emitDeliveries(outgoing: Pick<WebhookEvents, 'emit'>): DeliveryReported {
  return async (scope, delivery) => {
    const end = toDeliveryEnd(delivery);
    if (end === undefined) return;
    const { id: messageId, kind, channel, sessionId } = delivery.message;
    // The handoff request writes its notices itself: they belong to no turn.
    const turnId = kind === 'notice' ? null : delivery.message.turnId;
    const { state } = delivery;
    const error = end === 'arrived' ? null : (delivery.problem ?? { code: state, message: 'The message was not delivered.' });
    await outgoing.emit(scope, messageState({ messageId, channel, sessionId, turnId, state, at: reachedAt(delivery, end), error }));
  };
}

function toDeliveryEnd({ state, message }: Delivery): 'arrived' | 'lost' | undefined {
  const states: Readonly<Record<DeliveryState, 'arrived' | 'lost' | undefined>> = {
    waiting: undefined,
    // A provider without receipts reports no more than this: as far as is known, the message has arrived.
    sent: channelDefinitions[message.channel].hasReceipts ? undefined : 'arrived',
    delivered: 'arrived',
    read: 'arrived',
    failed: 'lost',
    unknown: 'lost',
    expired: 'lost',
    withheld: 'lost',
  };
  return states[state];
}

/**
 * When the message first reached this end, the same for every caller: later states, such as `read` after `delivered`,
 * change nothing.
 */
function reachedAt(delivery: Delivery, end: 'arrived' | 'lost'): string {
  const { message, steps } = delivery;
  const first = steps.findIndex((_step, index) => toDeliveryEnd(new Delivery(message, steps.slice(0, index + 1))) === end);
  return steps[first]?.at ?? delivery.updatedAt;
}

/**
 * The event of an ended turn; undefined for a turn that was answered together with another, whose event covers both.
 */
export function turnEnded(
  turn: AcceptedTurn,
  record: TurnRecord,
  text: () => Promise<string>,
): WebhookEventInput<'turn.completed'> | WebhookEventInput<'turn.failed'> | undefined {
  if (record.joinedTo !== undefined) return undefined;
  const { turnId, sessionId, agent, channel, origin } = turn;
  const data = { turnId, contact_id: sessionId, agent, channel, origin, acceptedAt: record.acceptedAt, usage: record.usage };
  const happened = { key: turnId, at: record.endedAt };
  if (record.error !== null) return { ...happened, type: 'turn.failed', data: { ...data, error: { code: record.error.code } } };
  const finishReason = record.finishReason ?? (record.status === 'cancelled' ? 'cancelled' : 'stop');
  return { ...happened, type: 'turn.completed', data: { ...data, finishReason }, text };
}

/**
 * The event of a warning to the owner about a turn that continued.
 * @param subject what the warning is about, where it holds for every turn until it is repaired: it is then one event a
 * day, dated to the start of the day
 */
export function turnWarned(
  turn: AcceptedTurn,
  warning: TurnWarning,
  subject?: { readonly name: string; readonly nowMs: number },
): WebhookEventInput<'turn.warning'> {
  const { turnId, sessionId, agent, channel, origin } = turn;
  const acceptedAt = new Date(turn.acceptedAtMs).toISOString();
  const data = { turnId, contact_id: sessionId, agent, channel, origin, acceptedAt, warning };
  if (subject === undefined) return { type: 'turn.warning', key: `${turnId}/${warning.code}`, at: acceptedAt, data };
  const day = new Date(Math.floor(subject.nowMs / DAY_MS) * DAY_MS).toISOString();
  return { type: 'turn.warning', key: `${warning.code}/${subject.name}`, at: day, data };
}

/** The event of a part of a budget that is used up: one for each part, limit and period, however often it is found. */
export function budgetReached(
  reached: BudgetReached,
  { periodFromMs, nowMs }: { readonly periodFromMs: number; readonly nowMs: number },
): WebhookEventInput<'budget.reached'> {
  // Dated to the day: one that was emitted on the first of a month would be old by its end.
  const day = new Date(Math.max(periodFromMs, Math.floor(nowMs / DAY_MS) * DAY_MS)).toISOString();
  const { period, unit, percent, limit } = reached;
  const key = `${period}/${String(periodFromMs)}/${unit}/${String(percent)}/${String(limit)}`;
  return { type: 'budget.reached', key, at: day, data: reached };
}

/** The event of a request that staff take over a conversation. */
export function handoffRequested({
  id,
  sessionId,
  requestedBy,
  since,
  until,
}: Pick<Handoff, 'id' | 'sessionId' | 'requestedBy' | 'since' | 'until'>): WebhookEventInput<'handoff.requested'> {
  return {
    type: 'handoff.requested',
    key: id,
    at: since,
    data: { handoffId: id, contact_id: sessionId, requestedBy: requestedBy.kind, until },
  };
}

/** The event of a conversation that has waited for staff for too long: one for each handoff. */
export function handoffUnanswered(
  { id, sessionId, since }: Pick<Handoff, 'id' | 'sessionId' | 'since'>,
  afterMinutes: number,
): WebhookEventInput<'handoff.unanswered'> {
  return { type: 'handoff.unanswered', key: id, at: since, data: { handoffId: id, contact_id: sessionId, since, afterMinutes } };
}

export interface MessageState {
  readonly messageId: string;
  readonly channel: MessagingChannel;
  readonly sessionId: string;
  /** null for a message that belongs to no turn. */
  readonly turnId: string | null;
  /** The state of the delivery: `delivered`, `read`, `failed`, `expired` … */
  readonly state: string;
  /** When the message reached this state, as stored with it: every repeated event has the same time. */
  readonly at: string;
  /** Why the message has not arrived, without any of its text. */
  readonly error: { readonly code: string; readonly message: string } | null;
}

/**
 * The event of a message to a contact that has arrived or will not: one event of each kind per message, whatever states
 * follow.
 */
export function messageState(message: MessageState): WebhookEventInput<'message.delivered'> | WebhookEventInput<'message.failed'> {
  const { messageId, channel, sessionId, turnId, state, at, error } = message;
  const data = { messageId, channel, contact_id: sessionId, turnId, state };
  if (error === null) return { type: 'message.delivered', key: messageId, at, data };
  return { type: 'message.failed', key: messageId, at, data: { ...data, error: { ...error } } };
}

/** The event of a schedule's time at which nothing ran. */
export function scheduleMissed(
  schedule: Pick<Schedule, 'id' | 'name'>,
  run: Pick<ScheduleRun, 'id' | 'scheduledAt'> & Partial<Pick<ScheduleRun, 'missedSince' | 'reason'>>,
): WebhookEventInput<'schedule.missed'> {
  const { missedSince = null, reason = null } = run;
  return {
    type: 'schedule.missed',
    key: `${schedule.id}/${run.id}`,
    at: run.scheduledAt,
    data: { ...runFacts(schedule, run), missedSince, reason },
  };
}

export interface EndedRun {
  readonly schedule: Pick<Schedule, 'id' | 'name'>;
  readonly run: Pick<ScheduleRun, 'id' | 'scheduledAt'>;
  readonly turn: { readonly id: string; readonly contact_id: string };
}

/** The event with the reply of a schedule's run, for the URL that the schedule names. */
export function scheduleCompleted({ schedule, run, turn }: EndedRun, text: string): WebhookEventInput<'schedule.completed'> {
  const data = { ...runFacts(schedule, run), turnId: turn.id, contact_id: turn.contact_id };
  return {
    type: 'schedule.completed',
    key: `${schedule.id}/${run.id}`,
    at: run.scheduledAt,
    data,
    text: async () => Promise.resolve(text),
  };
}

/** The event of a heartbeat with a message to the owner. */
export function heartbeatReported({ schedule, run, turn }: EndedRun, text: string): WebhookEventInput<'heartbeat.reported'> {
  const data = { runId: run.id, scheduledAt: run.scheduledAt, turnId: turn.id, contact_id: turn.contact_id };
  return {
    type: 'heartbeat.reported',
    key: `${schedule.id}/${run.id}`,
    at: run.scheduledAt,
    data,
    text: async () => Promise.resolve(text),
  };
}

/** The event of this many failed runs in a row. */
export function scheduleFailing(
  { schedule, run, turn }: EndedRun,
  { failures, error }: { readonly failures: number; readonly error: string | null },
): WebhookEventInput<'schedule.failing'> {
  const data = { ...runFacts(schedule, run), turnId: turn.id, contact_id: turn.contact_id, failures, error };
  return { type: 'schedule.failing', key: `${schedule.id}/${run.id}`, at: run.scheduledAt, data };
}

function runFacts(
  { id: scheduleId, name }: Pick<Schedule, 'id' | 'name'>,
  { id: runId, scheduledAt }: Pick<ScheduleRun, 'id' | 'scheduledAt'>,
): { scheduleId: string; name: string; runId: string; scheduledAt: string } {
  return { scheduleId, name, runId, scheduledAt };
}
