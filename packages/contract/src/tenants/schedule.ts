import { z } from 'zod';
import { Actor } from '../values/actor.ts';
import { appNamesJoined } from '../channel-definitions.ts';
import { MessagingChannel, Channel } from '../channels/channel.ts';
import { MessageText } from '../turns/chat.ts';
import { Duration } from '../values/duration.ts';
import { HttpUrl } from '../values/http-url.ts';
import { limits } from '../limits.ts';
import { AgentName } from './tenant.ts';
import { TimeZone } from '../values/time-zone.ts';
import { Authority } from '../turns/turn.ts';

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
  })
  .meta({ id: 'Schedule' });
export type ScheduleView = z.infer<typeof ScheduleView>;
