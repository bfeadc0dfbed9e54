import { DAY_MS, limits, type Schedule } from '@concierge/contract';
import { dueTicks, jitterMs, toRunId, type RunDecision } from '@concierge/tenant';

/** The maximum of times that are listed one by one: more than a day has. */
const COUNTED_MAX = 2000;

export interface RunsSituation {
  /** All times up to here are decided. */
  readonly afterMs: number;
  readonly nowMs: number;
  /** A run is under way or waits: the first due time meets the schedule's overlap rule. */
  readonly isRunning: boolean;
  readonly isWaiting: boolean;
  /** Why no run may start; null when runs may start. */
  readonly blockedReason: string | null;
}

/** Decides each due time, the oldest first. Runs that are `waiting` afterwards run one after another. */
export function decideDue(schedule: Schedule, situation: RunsSituation): RunDecision[] {
  const { nowMs, blockedReason } = situation;
  const { ticks, missedSince } = dueTimes(schedule, situation);
  const newest = ticks.slice(-limits.scheduleMissedMax);
  const left = missedSince ?? (ticks.length > newest.length ? iso(ticks[0] ?? 0) : null);
  if (blockedReason !== null) return newest.map((atMs) => decision(atMs, 'skipped', blockedReason));
  const lateBeforeMs = nowMs - jitterMs(schedule) - limits.scheduleLateMs;
  const late = newest.filter((atMs) => atMs < lateBeforeMs);
  const timely = newest.filter((atMs) => atMs >= lateBeforeMs);
  const missed = decideMissed(schedule, late, timely.length > 0);
  const [first, ...others] = missed;
  const decided = first === undefined || left === null ? missed : [{ ...first, missedSince: left }, ...others];
  const isWaiting = situation.isWaiting || missed.some(({ outcome }) => outcome === 'waiting');
  return [...decided, ...decideTimely(schedule, timely, { ...situation, isWaiting })];
}

/** Lists each missed time; of very many, those of the last day and since when there were others. */
function dueTimes(schedule: Schedule, { afterMs, nowMs }: RunsSituation): { ticks: number[]; missedSince: string | null } {
  const timesAfter = (fromMs: number): number[] =>
    dueTicks(schedule, { afterMs: fromMs, nowMs, limit: COUNTED_MAX }).map(({ atMs }) => atMs);
  const all = timesAfter(afterMs);
  if (all.length < COUNTED_MAX) return { ticks: all, missedSince: null };
  const ofLastDay = timesAfter(Math.max(afterMs, nowMs - DAY_MS));
  return { ticks: ofLastDay.length > 0 ? ofLastDay : all, missedSince: iso(all[0] ?? afterMs) };
}

function decideMissed({ missed }: Schedule, late: readonly number[], isRunNow: boolean): RunDecision[] {
  switch (missed) {
    case 'skip':
      return late.map((atMs) => decision(atMs, 'missed', 'nothing ran at that time'));
    case 'run_all':
      return late.map((atMs) => decision(atMs, 'waiting'));
    case 'run_once': {
      const made = isRunNow ? undefined : late.at(-1);
      return late.map((atMs) =>
        atMs === made ? decision(atMs, 'waiting') : decision(atMs, 'missed', 'nothing ran at that time; a later run makes up for it'),
      );
    }
  }
}

function decideTimely({ overlap }: Schedule, timely: readonly number[], situation: RunsSituation): RunDecision[] {
  let { isRunning, isWaiting } = situation;
  return timely.map((atMs) => {
    // One run may queue behind a running one, and behind one that makes up for missed times.
    const isLeftOut = overlap === 'skip' ? isRunning || isWaiting : isRunning && isWaiting;
    if (isLeftOut) return decision(atMs, 'skipped', 'the run before it had not ended');
    isRunning = isRunning || isWaiting;
    isWaiting = true;
    return decision(atMs, 'waiting');
  });
}

function decision(atMs: number, outcome: RunDecision['outcome'], reason: string | null = null): RunDecision {
  return { id: toRunId(atMs), scheduledAt: iso(atMs), trigger: 'schedule', outcome, reason };
}

function iso(atMs: number): string {
  return new Date(atMs).toISOString();
}
