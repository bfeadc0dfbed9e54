import {
  toAppName,
  type RunDelivery,
  type Schedule,
  type ScheduleDelivery,
  type ScheduleRun,
  type ScheduleTiming,
} from '@concierge/contract';
import { jitterMs, nextTicks, type Tick } from '@concierge/tenant';

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
    ...(enabled ? runsOf(schedule, zone) : []),
    `Agent: ${agent}. The reply goes ${deliveryWords(deliver)}.`,
    `Missed runs: ${missed}. While one is running: ${overlap}. This plan’s least distance: ${String(minutes)} minute${minutes === 1 ? '' : 's'}.`,
    `Message: ${message}`,
  ].join('\n');
}

/** A schedule on one line. */
export function lineOf(schedule: Schedule, zone: string): string {
  const [next] = schedule.enabled ? nextTicks(schedule, Date.now(), 1) : [];
  const when = next === undefined ? (schedule.enabled ? 'no run left' : 'paused') : `next ${tickWords(next, zoneOf(schedule, zone))}`;
  return `${schedule.id} "${schedule.name}": ${timingWords(schedule.schedule)}; ${when}`;
}

function runsOf(schedule: Schedule, tenantZone: string): string[] {
  const zone = zoneOf(schedule, tenantZone);
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

function zoneOf({ schedule }: Schedule, tenantZone: string): string {
  return 'cron' in schedule ? schedule.timezone : tenantZone;
}

/** A run on one line: when, what became of it, and of its reply. */
export function describeRun({ id, scheduledAt, trigger, outcome, reason, missedSince, turn, delivery }: ScheduleRun): string {
  const asked = trigger === 'manual' ? ' (asked for)' : '';
  const because = reason === null ? '' : `: ${reason}`;
  const more = missedSince === null ? '' : `; others before it, since ${missedSince}, have no entry`;
  const ended = turn === null ? '' : `; turn ${turn.id} ${turn.status === 'waiting' ? 'is under way' : turn.status}${wordsOf(turn.error)}`;
  const session = turn === null ? '' : `, conversation ${turn.contact_id}`;
  const delivered = delivery === null ? '' : `; reply ${wordsOfDelivery(delivery)}${wordsOf(delivery.reason)}`;
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

function wordsOf(reason: string | null): string {
  return reason === null ? '' : ` (${reason})`;
}
