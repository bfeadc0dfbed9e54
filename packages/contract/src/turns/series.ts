import { z } from 'zod';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../values/values.ts';
import { WaitReason } from './waiting.ts';

/** How far back a series goes, and how long one of its points is. */
export const seriesRanges = {
  '1h': { lengthMs: HOUR_MS, pointMs: 10 * SECOND_MS },
  '24h': { lengthMs: DAY_MS, pointMs: 2 * MINUTE_MS },
  '7d': { lengthMs: 7 * DAY_MS, pointMs: 15 * MINUTE_MS },
} as const;
export const SeriesRange = z.enum(['1h', '24h', '7d']);
export type SeriesRange = z.infer<typeof SeriesRange>;

const count = z.int().nonnegative();
const Milliseconds = z.number().nonnegative().nullable();

/** What happened from `at` on, for the length of a point; of what has a level, the highest. Null: no turn. */
export const SeriesPoint = z
  .object({
    at: z.iso.datetime(),
    waiting: count.meta({ description: 'Turns that wait, those with staff left out.' }),
    waitingBy: z.partialRecord(WaitReason, count).meta({
      description: 'By reason, those for which none waited left out; the highest of each, so together they may be more than `waiting`.',
    }),
    oldestSeconds: z.number().nonnegative().meta({ description: 'Age of the one that waits longest.' }),
    running: count,
    slots: count,
    ended: count.meta({ description: 'Turns that ended, failed ones included.' }),
    failed: count,
    waitP50Ms: Milliseconds.meta({ description: 'From acceptance to the start.' }),
    waitP95Ms: Milliseconds,
    runP50Ms: Milliseconds.meta({ description: 'From the start to the end.' }),
    runP95Ms: Milliseconds,
  })
  .meta({ id: 'SeriesPoint' });
export type SeriesPoint = z.infer<typeof SeriesPoint>;

/** GET /ops/api/series. Points in which nothing was looked at are left out. */
export const Series = z
  .object({ range: SeriesRange, pointSeconds: z.number().positive(), points: z.array(SeriesPoint) })
  .meta({ id: 'Series' });
export type Series = z.infer<typeof Series>;

export const logLevels = ['info', 'warn', 'error', 'fatal'] as const;

/** One line of a service's log, as it was written. */
export const LogLine = z
  .object({
    at: z.iso.datetime(),
    level: z.enum(logLevels),
    service: z.string(),
    message: z.string(),
    requestId: z.string().nullable(),
    turnId: z.string().nullable(),
    tenantId: z.string().nullable(),
    line: z.string().meta({ description: 'The whole line, JSON; cut off after 4,000 characters.' }),
  })
  .meta({ id: 'LogLine' });
export type LogLine = z.infer<typeof LogLine>;
