import { HOUR_MS } from '@concierge/contract';
import type { CronExpression } from './cron-expression.ts';
import type { ZoneClock } from './zone-clock.ts';

/** Further away than any change of clocks could make up for. */
const farMs = 30 * HOUR_MS;
const nearMs = 27 * HOUR_MS;
const stretchesMax = 16;

/** One run that a schedule asks for, named by its time. */
export interface Tick {
  readonly atMs: number;
  /**
   * The wall time that was asked for (see ZoneClock), where the clocks skip it that day and this is the moment after.
   */
  readonly movedFromWallMs: number | null;
}

/**
 * The times of a cron expression, in order, by the rules of Vixie cron. A schedule for certain hours runs once for each
 * time on the clock: a time that the clocks skip runs when they have skipped it, a time that they show twice runs the
 * first time. A schedule for every hour goes by time that has passed: it runs in both hours that look the same, and in
 * none that is not there.
 */
export function* cronTimes(cron: CronExpression, clock: ZoneClock, afterMs: number): Generator<Tick, never, undefined> {
  if (cron.isEveryHour) return yield* passingTimes(cron, clock, afterMs);
  return yield* clockTimes(cron, clock, afterMs);
}

function* clockTimes(cron: CronExpression, clock: ZoneClock, afterMs: number): Generator<Tick, never, undefined> {
  let lastMs = afterMs;
  for (let wallMs = cron.nextWall(clock.wallAt(afterMs)); ; wallMs = cron.nextWall(wallMs)) {
    const { atMs, isMoved } = clock.instantOf(wallMs);
    // Several times that are skipped fall on one moment: one run.
    if (atMs <= lastMs) continue;
    lastMs = atMs;
    yield { atMs, movedFromWallMs: isMoved ? wallMs : null };
  }
}

function* passingTimes(cron: CronExpression, clock: ZoneClock, afterMs: number): Generator<Tick, never, undefined> {
  for (let atMs = nextPassing(cron, clock, afterMs); ; atMs = nextPassing(cron, clock, atMs)) yield { atMs, movedFromWallMs: null };
}

/** From stretch to stretch of equal offset, until one has a time. */
function nextPassing(cron: CronExpression, clock: ZoneClock, afterMs: number): number {
  let fromMs = afterMs;
  let offset = clock.offsetAt(fromMs);
  let wallMs = fromMs + offset;
  for (let stretch = 0; stretch < stretchesMax; stretch += 1) {
    const candidateMs = cron.nextWall(wallMs) - offset;
    const isFar = candidateMs - fromMs > farMs;
    const changeMs = clock.firstChange(fromMs, isFar ? fromMs + nearMs : candidateMs);
    if (changeMs === undefined && !isFar) return candidateMs;
    // Where nothing changes soon, nothing is due either until shortly before the candidate, whatever the clocks do on
    // the way.
    fromMs = changeMs ?? candidateMs - nearMs;
    offset = clock.offsetAt(fromMs);
    // A time that the clocks show at the very change counts.
    wallMs = fromMs + offset - 1;
  }
  throw new Error(`no next time of ${cron.text} in ${clock.zone} was found`);
}
