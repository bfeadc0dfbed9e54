import { createHash } from 'node:crypto';
import { DAY_MS, AppError, durationMs, limits, type Schedule, type ScheduleTiming, type TenantSettings } from '@concierge/contract';
import { CronExpression, cronTimes, type Tick } from './cron-times.ts';
import { ZoneClock } from './zone-clock.ts';

/** What times are computed from. */
export type TimedSchedule = Pick<Schedule, 'id' | 'schedule' | 'countsFrom' | 'jitterSeconds'>;

/** The next times after `afterMs`, at most `count`; less when there are no more. */
export function nextTicks(schedule: Pick<Schedule, 'schedule' | 'countsFrom'>, afterMs: number, count: number): Tick[] {
  const ticks: Tick[] = [];
  if (count <= 0) return ticks;
  for (const tick of listTicks(schedule.schedule, Date.parse(schedule.countsFrom), afterMs)) {
    ticks.push(tick);
    if (ticks.length === count) break;
  }
  return ticks;
}

export interface DueQuery {
  /** Up to here all is dealt with already. */
  readonly afterMs: number;
  readonly nowMs: number;
  /** After a long stop there may be more than is worth reporting. */
  readonly limit: number;
}

/**
 * What has become due, jitter included, the oldest first. A tick is named by its own time, which jitter does not
 * change.
 */
export function dueTicks(schedule: TimedSchedule, { afterMs, nowMs, limit }: DueQuery): Tick[] {
  const untilMs = nowMs - jitterMs(schedule);
  const ticks: Tick[] = [];
  for (const tick of listTicks(schedule.schedule, Date.parse(schedule.countsFrom), afterMs)) {
    if (tick.atMs > untilMs || ticks.length === limit) break;
    ticks.push(tick);
  }
  return ticks;
}

/** When it runs next, jitter included; null when no time is left. */
export function nextRunMs(schedule: TimedSchedule, nowMs: number): number | null {
  const jitter = jitterMs(schedule);
  const [next] = nextTicks(schedule, nowMs - jitter, 1);
  return next === undefined ? null : next.atMs + jitter;
}

/** The next times, jitter included, as ISO 8601 with the offset of the schedule's zone; at most `count`. */
export function writeNextRuns(schedule: TimedSchedule, nowMs: number, count: number): string[] {
  const jitter = jitterMs(schedule);
  const clock = 'timezone' in schedule.schedule ? new ZoneClock(schedule.schedule.timezone) : undefined;
  return nextTicks(schedule, nowMs - jitter, count).map(({ atMs }) => {
    const runMs = atMs + jitter;
    return clock === undefined ? new Date(runMs).toISOString() : clock.write(runMs);
  });
}

/** How much later than its times a schedule runs: the same for each of them, and on every machine. */
export function jitterMs({ id, jitterSeconds }: Pick<Schedule, 'id' | 'jitterSeconds'>): number {
  if (jitterSeconds === 0) return 0;
  const digest = createHash('sha256').update(id).digest();
  return Math.floor((digest.readUInt32BE() / 0x1_0000_0000) * jitterSeconds * 1000);
}

/** The least distance between two runs on this plan. */
export function minDistanceMs(plan: TenantSettings['plan']): number {
  return plan === 'preview' ? limits.previewScheduleMinMs : limits.scheduleMinMs;
}

/** @throws AppError invalid_request: no cron expression, too close together, too far away, over already */
export function assertTiming(
  timing: ScheduleTiming,
  { nowMs, plan }: { readonly nowMs: number; readonly plan: TenantSettings['plan'] },
): void {
  const leastMs = minDistanceMs(plan);
  if ('cron' in timing) {
    assertDistance('schedule.cron', new CronExpression(timing.cron).minDistanceMs, leastMs);
  } else if ('every' in timing) {
    const everyMs = durationMs(timing.every);
    assertDistance('schedule.every', everyMs, leastMs);
    if (everyMs > limits.scheduleMaxDays * DAY_MS) throw refused('schedule.every', `must be at most ${String(limits.scheduleMaxDays)}d`);
  } else {
    const atMs = Date.parse(timing.at);
    if (atMs <= nowMs) throw refused('schedule.at', `must be in the future; it is ${new Date(nowMs).toISOString()} now`);
    if (atMs > nowMs + limits.scheduleMaxDays * DAY_MS)
      throw refused('schedule.at', `must be at most ${String(limits.scheduleMaxDays)} days away`);
  }
}

function* listTicks(timing: ScheduleTiming, countsFromMs: number, afterMs: number): Generator<Tick, void, undefined> {
  const startMs = Math.max(countsFromMs, afterMs);
  if ('cron' in timing) yield* cronTimes(new CronExpression(timing.cron), new ZoneClock(timing.timezone), startMs);
  else if ('every' in timing) yield* everyTimes(durationMs(timing.every), countsFromMs, startMs);
  else if (Date.parse(timing.at) > startMs) yield { atMs: Date.parse(timing.at), movedFromWallMs: null };
}

function* everyTimes(everyMs: number, countsFromMs: number, afterMs: number): Generator<Tick, never, undefined> {
  const passed = Math.floor((afterMs - countsFromMs) / everyMs);
  for (let atMs = countsFromMs + (passed + 1) * everyMs; ; atMs += everyMs) yield { atMs, movedFromWallMs: null };
}

function assertDistance(path: string, distanceMs: number, leastMs: number): void {
  if (distanceMs >= leastMs) return;
  const minutes = String(leastMs / 60_000);
  throw refused(
    path,
    `runs of this plan must be at least ${minutes} minute${minutes === '1' ? '' : 's'} apart, these are ${String(Number((distanceMs / 60_000).toFixed(2)))}`,
  );
}

function refused(path: string, message: string): AppError {
  return new AppError('invalid_request', `The schedule cannot be used: ${message}.`, { errors: [{ path, message }] });
}
