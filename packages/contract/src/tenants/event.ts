import { z } from 'zod';
import { MessagingChannel, CanonicalChannel } from '../channels/channel.ts';
import { ContactId, Usage } from '../turns/chat.ts';
import { errorCodeNames } from '../errors/error-code.ts';
import { JsonObject, FinishReason } from '../turns/turn-event.ts';
import { BudgetReached } from './budget.ts';
import { AgentName, TenantId } from './tenant.ts';
import { TurnOrigin } from '../turns/turn.ts';
import { openList } from '../values/stored.ts';

const facts = { tenant: TenantId };

const turnNames = {
  ...facts,
  turnId: z.string(),
  contact_id: ContactId,
  agent: AgentName,
  channel: CanonicalChannel,
  origin: TurnOrigin,
  acceptedAt: z.iso.datetime(),
};

const turnFacts = { ...turnNames, usage: Usage };

/**
 * What a turn did not end in, but its owner should know. `context_cut`: a context file is longer than its place in the
 * prompt; `context_unreadable`: one cannot be used at all; `summary_failed`: no model could shorten the conversation;
 * `window_small`: tools and prompt leave little of the model's window; `model_refused`: the provider takes no request
 * with this key or for this model.
 */
export const TurnWarning = z.strictObject({
  code: z.enum(['context_cut', 'context_unreadable', 'summary_failed', 'window_small', 'model_refused']),
  message: z.string(),
});
export type TurnWarning = z.infer<typeof TurnWarning>;

const messageFacts = {
  ...facts,
  messageId: z.string(),
  channel: MessagingChannel,
  contact_id: ContactId,
  turnId: z.string().nullable(),
  state: z.string(),
};

const runFacts = {
  ...facts,
  scheduleId: z.string(),
  name: z.string(),
  runId: z.string(),
  scheduledAt: z.iso.datetime(),
};

/**
 * What an event of each type contains: ids, states and figures, never messages, except texts that an endpoint or a
 * schedule asks for, and the heartbeat's report to the owner.
 */
export const eventData = {
  'turn.completed': z.strictObject({
    ...turnFacts,
    finishReason: FinishReason,
    /** The reply, only for endpoints that ask for it. */
    text: z.string().optional(),
  }),
  'turn.failed': z.strictObject({ ...turnFacts, error: z.strictObject({ code: z.enum(errorCodeNames) }) }),
  'turn.warning': z.strictObject({ ...turnNames, warning: TurnWarning }),
  'budget.reached': z.strictObject({ ...facts, ...BudgetReached.shape }),
  'handoff.requested': z.strictObject({
    ...facts,
    handoffId: z.string(),
    contact_id: ContactId,
    requestedBy: z.enum(['agent', 'key', 'operator', 'contact']),
    until: z.iso.datetime().nullable(),
  }),
  'handoff.unanswered': z.strictObject({
    ...facts,
    handoffId: z.string(),
    contact_id: ContactId,
    since: z.iso.datetime(),
    afterMinutes: z.int().positive(),
  }),
  'message.delivered': z.strictObject(messageFacts),
  'message.failed': z.strictObject({ ...messageFacts, error: z.strictObject({ code: z.string(), message: z.string() }) }),
  'schedule.missed': z.strictObject({ ...runFacts, missedSince: z.iso.datetime().nullable(), reason: z.string().nullable() }),
  'schedule.completed': z.strictObject({ ...runFacts, turnId: z.string(), contact_id: ContactId, text: z.string() }),
  'schedule.failing': z.strictObject({
    ...runFacts,
    turnId: z.string(),
    contact_id: ContactId,
    failures: z.int().positive(),
    error: z.string().nullable(),
  }),
  'heartbeat.reported': z.strictObject({
    ...facts,
    runId: z.string(),
    scheduledAt: z.iso.datetime(),
    turnId: z.string(),
    contact_id: ContactId,
    text: z.string(),
  }),
  'endpoint.test': z.strictObject(facts),
} as const;

export type EventType = keyof typeof eventData;
export type EventData = { readonly [Type in EventType]: z.infer<(typeof eventData)[Type]> };

const eventTypes = Object.keys(eventData) as [EventType, ...EventType[]]; // eslint-disable-line typescript/no-unsafe-type-assertion -- keys of a literal
export const EventType = openList(z.enum(eventTypes).meta({ id: 'EventType' }));

/** The types that an endpoint may subscribe to; the others go where a schedule, or a test, sends them. */
export const SubscribedType = openList(
  EventType.extract([
    'turn.completed',
    'turn.failed',
    'turn.warning',
    'budget.reached',
    'handoff.requested',
    'handoff.unanswered',
    'message.delivered',
    'message.failed',
    'schedule.missed',
    'schedule.failing',
    'heartbeat.reported',
  ]),
);
export type SubscribedType = z.infer<typeof SubscribedType>;

/**
 * `e_`, twelve digits of the time at which it happened, twelve of its endpoint, sixteen of what happened: the same
 * occurrence is the same event, whichever process reports it, ids are in the order of time, and an id leads to its
 * file.
 */
export const EventId = z.string().regex(/^e_[0-9a-f]{40}$/u, 'is not the id of an event');

/** One attempt at sending. */
export const EventTry = z.strictObject({
  at: z.iso.datetime(),
  /** Status of the HTTP answer; null when there was none. */
  status: z.int().nullable(),
  ms: z.int().nonnegative(),
  /** null when it was taken. */
  error: z.string().nullable(),
});
export type EventTry = z.infer<typeof EventTry>;

/** Waiting → sent, or dead after its last try; dead → waiting again when it is redriven. */
export const EventStatus = z.enum(['waiting', 'sent', 'dead']);
export type EventStatus = z.infer<typeof EventStatus>;

/**
 * tenants/<id>/events/<status>/<hour>/<id>.json. The folder is its status. `outcome` is written before the file is
 * moved there, so that one whose mover died is moved and not sent again.
 */
export const EventRecord = z.strictObject({
  version: z.literal(1),
  id: EventId,
  type: EventType,
  timestamp: z.iso.datetime(),
  data: JsonObject,
  /** Tries since it was made, or since its last redrive. */
  tries: z.int().nonnegative(),
  /** The last ones of all. */
  log: z.array(EventTry),
  nextTryAt: z.iso.datetime(),
  outcome: EventStatus.exclude(['waiting']).nullable(),
  /** Why it is dead. */
  reason: z.string().nullable(),
});
export type EventRecord = z.infer<typeof EventRecord>;

/** GET /api/events */
export const EventView = z
  .object({
    id: EventId,
    endpointId: z.string(),
    type: EventType,
    timestamp: z.iso.datetime(),
    status: EventStatus,
    tries: z.int(),
    /** null once nothing more is to come. */
    nextTryAt: z.iso.datetime().nullable(),
    reason: z.string().nullable(),
    /** The last tries, the oldest first. */
    log: z.array(EventTry),
    data: JsonObject,
  })
  .meta({ id: 'Event' });
export type EventView = z.infer<typeof EventView>;
