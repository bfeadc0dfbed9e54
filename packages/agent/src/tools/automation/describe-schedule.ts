import {
  toAppName,
  type RunDelivery,
  type Schedule,
  type ScheduleDelivery,
  type ScheduleRun,
  type ScheduleTiming,
  channelSynonyms,
  HttpUrl,
  readRecipient,
  channelDefinitions,
  TimeZone,
  type AppName,
} from '@concierge/contract';
import { jitterMs, nextTicks, type Tick, ZoneClock } from '@concierge/tenant';
import { ToolError } from '../tool.ts';

const RUNS_SHOWN = 5;

/** All of a schedule, with its next runs in words. */
export function describeSchedule(
  schedule: Schedule,
  { zone, minDistanceMs }: { readonly zone: string; readonly minDistanceMs: number },
): string {
  const { id, name, agent, message, deliver, missed, overlap, jitterSeconds, enabled } = schedule;
  const minutes = minDistanceMs / 60_000;
  return [
    `${id} "${name}", ${enabled ? 'enabled' : 'paused'}`,
    `When: ${timingWords(schedule.schedule)}${jitterSeconds === 0 ? '' : `, ${String(Math.round(jitterMs(schedule) / 1000))} seconds later each time`}`,
    ...(enabled ? listRuns(schedule, zone) : []),
    `Agent: ${agent}. The reply goes ${deliveryWords(deliver)}.`,
    `Missed runs: ${missed}. While one is running: ${overlap}. This plan’s least distance: ${String(minutes)} minute${minutes === 1 ? '' : 's'}.`,
    `Message: ${message}`,
  ].join('\n');
}

/** A schedule on one line. */
export function summarizeSchedule(schedule: Schedule, zone: string): string {
  const [next] = schedule.enabled ? nextTicks(schedule, Date.now(), 1) : [];
  const when = next === undefined ? (schedule.enabled ? 'no run left' : 'paused') : `next ${tickWords(next, findZone(schedule, zone))}`;
  return `${schedule.id} "${schedule.name}": ${timingWords(schedule.schedule)}; ${when}`;
}

function listRuns(schedule: Schedule, tenantZone: string): string[] {
  const zone = findZone(schedule, tenantZone);
  const ticks = nextTicks(schedule, Date.now(), RUNS_SHOWN);
  if (ticks.length === 0) return ['Next runs: none, its time is over.'];
  return [`Next runs (${zone}):`, ...ticks.map((tick) => `- ${tickWords(tick, zone)}`)];
}

function deliveryWords(deliver: ScheduleDelivery | null): string {
  if (deliver === null) return 'nowhere, it stays in its conversation';
  return 'webhook' in deliver ? `to ${deliver.webhook}` : `to ${deliver.to} on ${toAppName(deliver.channel)}`;
}

function timingWords(timing: ScheduleTiming): string {
  if ('cron' in timing) return `cron ${timing.cron}, ${timing.timezone}`;
  return 'every' in timing ? `every ${timing.every}` : `once, ${timing.at}`;
}

function tickWords({ atMs, movedFromWallMs }: Tick, zone: string): string {
  const words = new Intl.DateTimeFormat('en-GB', { timeZone: zone, dateStyle: 'full', timeStyle: 'short' }).format(atMs);
  if (movedFromWallMs === null) return words;
  return `${words} (the clocks skip ${new Date(movedFromWallMs).toISOString().slice(11, 16)} that day, so it runs right after)`;
}

function findZone({ schedule }: Schedule, tenantZone: string): string {
  return 'cron' in schedule ? schedule.timezone : tenantZone;
}

/** A run on one line: when, what became of it, and of its reply. */
export function describeRun({ id, scheduledAt, trigger, outcome, reason, missedSince, turn, delivery }: ScheduleRun): string {
  const asked = trigger === 'manual' ? ' (asked for)' : '';
  const because = reason === null ? '' : `: ${reason}`;
  const more = missedSince === null ? '' : `; others before it, since ${missedSince}, have no entry`;
  const ended =
    turn === null ? '' : `; turn ${turn.id} ${turn.status === 'waiting' ? 'is under way' : turn.status}${describeReason(turn.error)}`;
  const session = turn === null ? '' : `, conversation ${turn.contact_id}`;
  const delivered = delivery === null ? '' : `; reply ${wordsOfDelivery(delivery)}${describeReason(delivery.reason)}`;
  return `${id} ${scheduledAt}${asked} ${outcome}${because}${more}${ended}${session}${delivered}`;
}

function wordsOfDelivery({ status, eventId }: RunDelivery): string {
  return status === 'kept' && eventId !== null ? 'is being sent to its webhook' : runDeliveryWords[status];
}

const runDeliveryWords: Readonly<Record<RunDelivery['status'], string>> = {
  kept: 'waits to be sent',
  nothing_to_send: 'not delivered: there was none',
  forgotten: 'was accepted to be sent; what became of it is not known any more',
  sent: 'sent',
  delivered: 'delivered',
  read: 'delivered and read',
  failed: 'not delivered',
  unknown: 'may have been sent or not',
  expired: 'not sent in time',
  withheld: 'withheld',
};

function describeReason(reason: string | null): string {
  return reason === null ? '' : ` (${reason})`;
}

const local = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2})?$/u;
const withOffset = /(?:Z|[+-](?:0\d|1[0-4]):[0-5]\d)$/u;

interface AskedTiming {
  readonly cron?: string | undefined;
  readonly every?: string | undefined;
  readonly at?: string | undefined;
  readonly timezone?: string | undefined;
}

/** The time that a model asked for, as a schedule stores it; undefined when it asked for none. @throws ToolError */
export function readTiming({ cron, every, at, timezone }: AskedTiming, defaultZone: string): ScheduleTiming | undefined {
  const given = [cron, every, at].filter((value) => value !== undefined);
  if (given.length > 1) throw new ToolError('Give exactly one of cron, every and at.');
  if (timezone !== undefined && !TimeZone.safeParse(timezone).success)
    throw new ToolError(`${timezone} is not a time zone: give an IANA name such as Europe/Berlin.`);
  if (cron !== undefined) return { cron, timezone: timezone ?? defaultZone };
  if (timezone !== undefined && at === undefined) throw new ToolError('timezone goes with cron or at: a fixed distance has no zone.');
  if (every !== undefined) return { every };
  return at === undefined ? undefined : { at: readMoment(at, timezone ?? defaultZone) };
}

function readMoment(at: string, zone: string): string {
  const offset = withOffset.exec(at)?.[0] ?? '';
  const text = at.slice(0, at.length - offset.length);
  const wall = new Date(`${text}Z`);
  // JavaScript would take a 31 February for a day in March.
  if (!local.test(text) || Number.isNaN(wall.getTime()) || !wall.toISOString().startsWith(text))
    throw new ToolError(`${at} is not a time: write 2027-01-31T09:00, or with an offset 2027-01-31T09:00+01:00.`);
  if (offset !== '') return new Date(at).toISOString();
  const { atMs, isMoved } = new ZoneClock(zone).toInstant(wall.getTime());
  if (isMoved) throw new ToolError(`The clocks in ${zone} never show ${at}: they go forward over it. Choose another time.`);
  return new Date(atMs).toISOString();
}

interface AskedDelivery {
  readonly deliver_channel?: AppName | 'webhook' | 'none' | undefined;
  readonly deliver_to?: string | undefined;
}

/** Undefined when neither argument was given, null for no delivery. @throws ToolError for half of it */
export function readDelivery({ deliver_channel: app, deliver_to: to }: AskedDelivery): ScheduleDelivery | null | undefined {
  if (app === undefined && to === undefined) return undefined;
  if (app === 'none') {
    if (to !== undefined) throw new ToolError('deliver_channel none sends nothing to anybody: leave deliver_to out.');
    return null;
  }
  if (app === undefined || to === undefined)
    throw new ToolError('deliver_channel and deliver_to go together: the app, and who gets it there; or webhook, and its URL.');
  if (app === 'webhook') {
    const url = HttpUrl.safeParse(to);
    if (!url.success)
      throw new ToolError(`"${to}" is no address of a webhook: give a URL that begins with https:// and has no password in it.`);
    return { webhook: url.data };
  }
  const recipient = readRecipient(channelSynonyms[app], to);
  if (recipient === undefined)
    throw new ToolError(`"${to}" is nobody on ${app}: give ${channelDefinitions[channelSynonyms[app]].recipient.words}.`);
  return { channel: channelSynonyms[app], to: recipient };
}
