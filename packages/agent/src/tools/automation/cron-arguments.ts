import {
  channelSynonyms,
  HttpUrl,
  readRecipient,
  channelDefinitions,
  TimeZone,
  type AppName,
  type ScheduleDelivery,
  type ScheduleTiming,
} from '@concierge/contract';
import { ZoneClock } from '@concierge/tenant';
import { ToolError } from '../tool.ts';

const local = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2})?$/u;
const withOffset = /(?:Z|[+-](?:0\d|1[0-4]):[0-5]\d)$/u;

interface AskedTiming {
  readonly cron?: string | undefined;
  readonly every?: string | undefined;
  readonly at?: string | undefined;
  readonly timezone?: string | undefined;
}

/** The time that a model asked for, as a schedule stores it; undefined when it asked for none. @throws ToolError */
export function timingOf({ cron, every, at, timezone }: AskedTiming, defaultZone: string): ScheduleTiming | undefined {
  const given = [cron, every, at].filter((value) => value !== undefined);
  if (given.length > 1) throw new ToolError('Give exactly one of cron, every and at.');
  if (timezone !== undefined && !TimeZone.safeParse(timezone).success)
    throw new ToolError(`${timezone} is not a time zone: give an IANA name such as Europe/Berlin.`);
  if (cron !== undefined) return { cron, timezone: timezone ?? defaultZone };
  if (timezone !== undefined && at === undefined) throw new ToolError('timezone goes with cron or at: a fixed distance has no zone.');
  if (every !== undefined) return { every };
  return at === undefined ? undefined : { at: momentOf(at, timezone ?? defaultZone) };
}

function momentOf(at: string, zone: string): string {
  const offset = withOffset.exec(at)?.[0] ?? '';
  const text = at.slice(0, at.length - offset.length);
  const wall = new Date(`${text}Z`);
  // JavaScript would take a 31 February for a day in March.
  if (!local.test(text) || Number.isNaN(wall.getTime()) || !wall.toISOString().startsWith(text))
    throw new ToolError(`${at} is not a time: write 2027-01-31T09:00, or with an offset 2027-01-31T09:00+01:00.`);
  if (offset !== '') return new Date(at).toISOString();
  const { atMs, isMoved } = new ZoneClock(zone).instantOf(wall.getTime());
  if (isMoved) throw new ToolError(`The clocks in ${zone} never show ${at}: they go forward over it. Choose another time.`);
  return new Date(atMs).toISOString();
}

interface AskedDelivery {
  readonly deliver_channel?: AppName | 'webhook' | 'none' | undefined;
  readonly deliver_to?: string | undefined;
}

/** Undefined when neither argument was given, null for no delivery. @throws ToolError for half of it */
export function deliveryOf({ deliver_channel: app, deliver_to: to }: AskedDelivery): ScheduleDelivery | null | undefined {
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
