import type { SchedulePatch, ScheduleView } from '@concierge/contract';

const patterns = { daily: '* * *', weekdays: '* * 1-5', weekly: '* * 1', monthly: '1 * *' } as const;
export const timingChoices = ['daily', 'weekdays', 'weekly', 'monthly', 'own'] as const;
export type TimingChoice = (typeof timingChoices)[number];

/** What the fields of the form hold. */
export interface ScheduleValues {
  readonly name: string;
  readonly agent: string;
  readonly message: string;
  readonly pattern: TimingChoice;
  /** `08:30`, for all patterns but `own`. */
  readonly time: string;
  readonly cron: string;
  /** Empty: that of the account. */
  readonly timezone: string;
}

export const newSchedule: ScheduleValues = {
  name: '',
  agent: 'admin',
  message: '',
  pattern: 'weekdays',
  time: '08:00',
  cron: '0 8 * * *',
  timezone: '',
};

/** Ready for the next one; what has been written for it while this one was being made stays. */
export function emptyTask(now: ScheduleValues, made: Pick<ScheduleValues, 'name' | 'message'>): ScheduleValues {
  return { ...now, name: now.name === made.name ? '' : now.name, message: now.message === made.message ? '' : now.message };
}

/** The cron expression that the fields say. */
export function toCron({ pattern, time, cron }: Pick<ScheduleValues, 'pattern' | 'time' | 'cron'>): string {
  if (pattern === 'own') return cron;
  const [hour = '8', minute = '0'] = time.split(':').map((part) => String(Number(part)));
  return `${minute} ${hour} ${patterns[pattern]}`;
}

/** A schedule in the fields; one that has no cron expression leaves those of its timing as they are for a new one. */
export function toValues({ name, agent, message, schedule }: ScheduleView): ScheduleValues {
  const timing = 'cron' in schedule ? { ...readCron(schedule.cron), timezone: schedule.timezone } : {};
  return { ...newSchedule, name, agent, message, ...timing };
}

/** As a pattern, where its fields say exactly this expression again. */
function readCron(cron: string): Pick<ScheduleValues, 'pattern' | 'time' | 'cron'> {
  const [minute = '', hour = '', ...days] = cron.split(' ');
  const time = `${hour.padStart(2, '0')}:${minute.padStart(2, '0')}`;
  const pattern = timingChoices.find((choice) => choice !== 'own' && patterns[choice] === days.join(' '));
  const isSaid = pattern !== undefined && toCron({ pattern, time, cron }) === cron;
  return isSaid ? { pattern, time, cron } : { ...newSchedule, pattern: 'own', cron };
}

/** Only what was changed: what has no field stays, and times that did not change do not begin anew. */
export function toPatch(before: ScheduleView, values: ScheduleValues): SchedulePatch {
  const { schedule } = before;
  const [cron, timezone] = [toCron(values), values.timezone];
  const isRetimed = 'cron' in schedule && (schedule.cron !== cron || schedule.timezone !== timezone);
  return {
    ...(values.name !== before.name && { name: values.name }),
    ...(values.agent !== before.agent && { agent: values.agent }),
    ...(values.message !== before.message && { message: values.message }),
    ...(isRetimed && { schedule: { cron, timezone } }),
  };
}

/** It has more than the fields show: where the answer goes, what happens to runs that cannot begin in time. */
export function hasMore({ deliver, missed, overlap, jitterSeconds, alert }: ScheduleView): boolean {
  return deliver !== null || missed !== 'run_once' || overlap !== 'skip' || jitterSeconds !== 0 || alert !== null;
}
