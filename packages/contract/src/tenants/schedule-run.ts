import { z } from 'zod';
import { EventId } from './event.ts';
import { OutboundId } from '../channels/outbound.ts';
import { ScheduleId } from './schedule.ts';

/** `r_` and the milliseconds of its time, so that a time has one run; `n_` for a requested one. */
export const ScheduleRunId = z.string().regex(/^(?:r_\d{15}|n_[0-9a-f]{32})$/u, 'is not the id of a run');

/** Waiting → ran, or skipped when it must not run any more. A missed or skipped one stays so. */
export const RunOutcome = z.enum(['waiting', 'ran', 'missed', 'skipped']);

/** `lost`: its conversation was removed before its outcome was read. */
export const RunTurn = z.strictObject({
  id: z.string(),
  contact_id: z.string(),
  status: z.enum(['waiting', 'done', 'failed', 'cancelled', 'lost']),
  error: z.string().nullable(),
});
export type RunTurn = z.infer<typeof RunTurn>;

/**
 * What became of the reply. `kept`: it is on disk, in the outbox or as an event, and waits to be sent; a view of the
 * run shows what has become of it since (see `deliveryStates`). `forgotten`: that was too long ago to be known.
 */
export const RunDelivery = z.strictObject({
  status: z.enum(['kept', 'nothing_to_send', 'forgotten', 'sent', 'delivered', 'read', 'failed', 'unknown', 'expired', 'withheld']),
  messageId: OutboundId.nullable(),
  /** The event of a reply that goes to a webhook. */
  eventId: EventId.nullable().default(null),
  reason: z.string().nullable(),
});
export type RunDelivery = z.infer<typeof RunDelivery>;

const fields = {
  id: ScheduleRunId,
  scheduledAt: z.iso.datetime(),
  trigger: z.enum(['schedule', 'manual']),
  outcome: RunOutcome,
  /** Why it was missed or skipped. */
  reason: z.string().nullable(),
  /** For a missed run: more runs were missed from here on that have no entry. */
  missedSince: z.iso.datetime().nullable(),
  recordedAt: z.iso.datetime(),
  /** null until it is accepted. */
  turn: RunTurn.nullable(),
  /** null until the turn has ended, and where nothing is to be delivered. */
  delivery: RunDelivery.nullable(),
  /** After this run the owner was notified that the schedule keeps failing. */
  alertedAt: z.iso.datetime().nullable(),
};

/**
 * tenants/<id>/cron/<schedule>/<run>.json: made once, when it is decided what becomes of a time; after that only its
 * end is added.
 */
export const ScheduleRun = z.strictObject({ version: z.literal(1), scheduleId: ScheduleId, ...fields });
export type ScheduleRun = z.infer<typeof ScheduleRun>;

/** cron/<schedule>/<run>.delivery.json: how the sending of its reply ended, written by its sender. */
export const RunDeliveryEnd = z.strictObject({
  version: z.literal(1),
  eventId: EventId,
  status: RunDelivery.shape.status.extract(['sent', 'failed']),
  reason: z.string().nullable(),
});
export type RunDeliveryEnd = z.infer<typeof RunDeliveryEnd>;

/** What GET /api/cron/{id}/runs shows. */
export const ScheduleRunView = z.object(fields).meta({ id: 'ScheduleRun' });
export type ScheduleRunView = z.infer<typeof ScheduleRunView>;
