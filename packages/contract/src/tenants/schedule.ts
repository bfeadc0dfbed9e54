import { z } from 'zod';
import { Actor } from '../values/actor.ts';
import { appNamesJoined } from '../channel-definitions.ts';
import { MessagingChannel, Channel } from '../channels/channel.ts';
import { MessageText } from '../turns/chat.ts';
import { Duration, TimeZone, HttpUrl } from '../values/values.ts';
import { limits } from '../limits.ts';
import { AgentName } from './tenant.ts';
import { Authority } from '../turns/turn.ts';
import { EventId } from './event.ts';
import { OutboundId } from '../channels/outbound.ts';

export const ScheduleId = z.string().regex(/^s_[0-9a-f]{32}$/u, 'is not the id of a schedule');

/** Five fields; the code that computes the times checks their content. */
const CronText = z.string().min(1).max(limits.cronMaxCharacters);

/** When: by the wall clock of a zone, at a fixed distance, or once. */
export const ScheduleTiming = z.union(
  [
    z.strictObject({ cron: CronText, timezone: TimeZone }),
    z.strictObject({ every: Duration }),
    z.strictObject({ at: z.iso.datetime({ offset: true }).max(limits.timeMaxCharacters) }),
  ],
  'must be one of {cron, timezone}, {every} with a duration such as 15m, or {at} with a time such as 2026-12-01T09:00:00Z',
);
export type ScheduleTiming = z.infer<typeof ScheduleTiming>;

/**
 * Where the reply goes: to a contact on a channel, or to a URL, as the event `schedule.completed` of the endpoint that
 * has it.
 */
export const ScheduleDelivery = z.union([
  z.strictObject({ channel: MessagingChannel, to: z.string().min(1).max(limits.senderMaxCharacters) }),
  z.strictObject({ webhook: HttpUrl }),
]);
export type ScheduleDelivery = z.infer<typeof ScheduleDelivery>;

/** As a client asks for it: a channel under any of its names. */
const AskedDelivery = z
  .union(
    [
      z.strictObject({
        channel: Channel.pipe(MessagingChannel),
        to: z.string().min(1).max(limits.senderMaxCharacters),
      }),
      z.strictObject({ webhook: HttpUrl }),
    ],
    `must be {channel, to} with ${appNamesJoined('or')}, {webhook} with an http or https URL, or null`,
  )
  .nullable();

export const MissedPolicy = z.enum(['run_once', 'skip', 'run_all']);
/** What becomes of a run that is due while the one before it is not finished. */
export const OverlapPolicy = z.enum(['skip', 'queue']);

/** Notify the owner after so many failed runs in a row, and then not again for a while. */
export const FailureAlert = z.strictObject({ afterFailures: z.int().min(1).max(100), cooldown: Duration });

const definition = {
  name: z.string().trim().min(1).max(limits.scheduleNameMaxCharacters),
  agent: AgentName,
  message: MessageText,
  schedule: ScheduleTiming,
  deliver: ScheduleDelivery.nullable(),
  missed: MissedPolicy,
  overlap: OverlapPolicy,
  /**
   * Runs up to this much later than scheduled, always by the same amount: so that not all schedules run on the full
   * hour.
   */
  jitterSeconds: z.int().min(0).max(limits.scheduleJitterMaxSeconds),
  alert: FailureAlert.nullable(),
  enabled: z.boolean(),
};

/** What POST /api/cron takes. */
export const NewSchedule = z
  .strictObject({
    ...definition,
    agent: AgentName.default('admin'),
    deliver: AskedDelivery.default(null),
    missed: MissedPolicy.default('run_once'),
    overlap: OverlapPolicy.default('skip'),
    jitterSeconds: definition.jitterSeconds.default(0),
    alert: FailureAlert.nullable().default(null),
    enabled: z.boolean().default(true),
  })
  .meta({ id: 'NewSchedule' });
export type NewSchedule = z.infer<typeof NewSchedule>;

/** What PATCH /api/cron/{id} takes: each field replaces the one that was there. */
export const SchedulePatch = z
  .strictObject({ ...definition, deliver: AskedDelivery })
  .partial()
  .meta({ id: 'SchedulePatch' });
export type SchedulePatch = z.infer<typeof SchedulePatch>;

/**
 * tenants/<id>/cron/<id>.json: the definition, which only people and agents change. What has been run is not in here,
 * so that the process that fires it never overwrites a change of the owner's.
 */
export const Schedule = z.strictObject({
  version: z.literal(1),
  id: ScheduleId,
  ...definition,
  /** What its turns may do at most: the authority of its creator. */
  authority: Authority,
  /**
   * Names of the tools its turns may have at most, as the agents had that made or changed it; null: all that its agent
   * has.
   */
  tools: z.array(z.string()).nullable().default(null),
  createdBy: Actor,
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
  /**
   * Times count from here: set when it is made, re-timed or enabled, so that a pause is no row of missed runs. `every`
   * counts from here.
   */
  countsFrom: z.iso.datetime(),
});
export type Schedule = z.infer<typeof Schedule>;

/** What GET /api/cron shows. */
export const ScheduleView = z
  .object({
    id: ScheduleId,
    ...definition,
    createdBy: Actor,
    createdAt: z.iso.datetime(),
    updatedAt: z.iso.datetime(),
    /** null when it is paused, or has no time left. */
    nextRunAt: z.iso.datetime().nullable(),
    nextRuns: z
      .array(z.string())
      .max(limits.scheduleNextRuns)
      .meta({ description: 'Its next times, as the zone of the schedule writes them; one of `every` or `at` has UTC.' }),
  })
  .meta({ id: 'Schedule' });
export type ScheduleView = z.infer<typeof ScheduleView>;

/** What GET /api/schedule-times takes: one way to say when, as the `schedule` of a schedule has it. */
export const ScheduleTimesQuery = z
  .strictObject({
    cron: CronText.meta({ description: 'A cron expression of five fields; `timezone` is asked for with it.' }),
    timezone: z.string().max(64).meta({ description: 'The IANA name of the zone in which `cron` is read.' }),
    every: z.string().max(64).meta({ description: 'An interval, as `15m` or `2h`.' }),
    at: z.string().max(limits.timeMaxCharacters).meta({ description: 'One time (RFC 3339).' }),
  })
  .partial();

/** What GET /api/schedule-times answers. */
export const ScheduleTimes = z
  .object({ nextRuns: ScheduleView.shape.nextRuns.meta({ description: 'The next times; none when there are none.' }) })
  .meta({ id: 'ScheduleTimes' });
export type ScheduleTimes = z.infer<typeof ScheduleTimes>;

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
