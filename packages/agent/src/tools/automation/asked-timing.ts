import { TimeZone, type ScheduleTiming } from '@concierge/contract';
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

/** What a model asked for, as a schedule has it; undefined when it asked for no time. @throws ToolError */
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
  // A 31 February would be taken for a day in March.
  if (!local.test(text) || Number.isNaN(wall.getTime()) || !wall.toISOString().startsWith(text))
    throw new ToolError(`${at} is not a time: write 2027-01-31T09:00, or with an offset 2027-01-31T09:00+01:00.`);
  if (offset !== '') return new Date(at).toISOString();
  const { atMs, isMoved } = new ZoneClock(zone).instantOf(wall.getTime());
  if (isMoved) throw new ToolError(`The clocks in ${zone} never show ${at}: they go forward over it. Choose another time.`);
  return new Date(atMs).toISOString();
}
