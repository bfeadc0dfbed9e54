import { z } from 'zod';
import { TenantId } from '../tenants/tenant.ts';
import { Channel } from './channel.ts';

/** What leaves a deployment: messages on a channel, or webhook events. */
const Way = z.union([Channel, z.literal('events')]);

/** GET /ops/api/deliveries: what of one tenant has not arrived, on one channel or of its webhook events. */
export const StuckDeliveries = z
  .object({
    tenantId: TenantId,
    channel: z.string(),
    /** To be sent, those that are tried again included. */
    waiting: z.int().nonnegative(),
    /** Of these: tried before, in vain. */
    retrying: z.int().nonnegative(),
    /** Dead letters: not tried again by themselves. */
    dead: z.int().nonnegative(),
    /** False: there are more than one look reads. */
    isWhole: z.boolean(),
    oldestWaitingAt: z.iso.datetime().nullable(),
    /** The dead letter that was accepted last, and why it is one. */
    lastDead: z.object({ id: z.string(), acceptedAt: z.iso.datetime(), problem: z.string().nullable() }).nullable(),
  })
  .meta({ id: 'StuckDeliveries' });
export type StuckDeliveries = z.infer<typeof StuckDeliveries>;

/** POST /ops/api/deliveries/redrive */
export const RedriveBody = z
  .strictObject({
    tenant: TenantId.optional(),
    channel: Way.optional().meta({ description: 'Messages of this channel alone, or `events`.' }),
    dryRun: z.boolean().default(true).meta({ description: 'Counts, and sends nothing.' }),
    limit: z.int().min(1).max(50).default(10).meta({ description: 'Dead letters that are taken up at most; ask again for more.' }),
    cursor: z.string().min(1).max(512).optional().meta({ description: 'The `nextCursor` of the answer before.' }),
  })
  .meta({ id: 'Redrive' });
export type RedriveBody = z.infer<typeof RedriveBody>;

/**
 * Why a dead letter is not sent again in bulk. `unknown`: it may have arrived. `withheld`: it must not be sent.
 * `refused`: it cannot be taken up now, such as of an endpoint that takes nothing.
 */
const RedriveSkip = z.enum(['unknown', 'withheld', 'refused']);
export type RedriveSkip = z.infer<typeof RedriveSkip>;

export const Redriven = z
  .object({
    dryRun: z.boolean(),
    /** Taken up; in a dry run, those that would be. */
    deliveries: z.int().nonnegative(),
    tenants: z.array(z.object({ tenantId: TenantId, deliveries: z.int().positive() })),
    redriven: z.array(z.object({ tenantId: TenantId, id: z.string() })),
    skipped: z.array(z.object({ reason: RedriveSkip, deliveries: z.int().positive() })),
    /** More may follow; null when nothing does. */
    nextCursor: z.string().nullable(),
  })
  .meta({ id: 'Redriven' });
export type Redriven = z.infer<typeof Redriven>;
