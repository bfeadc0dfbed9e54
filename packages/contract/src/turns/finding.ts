import { z } from 'zod';
import { SaidParams } from '../values/said.ts';

/** Everything that a look at a deployment says of it, but for what a library or a worker says in its own words. */
export const findingCodes = [
  'redis_version',
  'redis_slots',
  'redis_slots_away',
  'redis_kept',
  'redis_not_kept',
  'clocks_agree',
  'clock_ahead',
  'clock_behind',
  'index_in',
  'connections_unlimited',
  'connections_enough',
  'connections_short',
  'workers_none',
  'workers_alive',
  'workers_stopping',
  'workers_drained',
  'turns_wait',
  'demo_answers',
  'default_model',
  'email_sent',
  'email_off',
  'versions_alone',
  'versions_same',
  'versions_differ',
  'no_worker_to_ask',
  'no_cron_to_ask',
  'no_redis_to_ask',
] as const;
export type FindingCode = (typeof findingCodes)[number];

/** What one look at a part of the deployment has found, in a sentence. */
export const Finding = z
  .object({
    name: z.string(),
    status: z.enum(['ok', 'warning', 'failed']),
    detail: z.string(),
    said: z
      .array(z.object({ code: z.enum(findingCodes).or(z.string()), params: SaidParams }))
      .optional()
      .meta({ description: 'The same as sentences by their codes; absent where it is in words of a library or a worker.' }),
  })
  .meta({ id: 'Finding' });
export type Finding = z.infer<typeof Finding>;
