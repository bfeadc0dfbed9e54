import { z } from 'zod';
import { limits } from '../limits.ts';
import { TenantId } from '../tenants/tenant.ts';

/** Why an operator does something. It goes on record, where the tenant reads it, too. */
export const AuditReason = z.string().trim().min(1).max(limits.auditReasonMaxCharacters);

/** POST /ops/api/turns/cancel */
export const CancelTurnsBody = z
  .strictObject({
    tenant: TenantId,
    dryRun: z.boolean().default(true).meta({ description: 'Counts, and cancels nothing.' }),
    reason: AuditReason.optional().meta({
      description: 'Why, in a sentence: needed unless it is a dry run. It goes on record, where the tenant reads it, too.',
    }),
  })
  .refine(({ dryRun, reason }) => dryRun || reason !== undefined, { path: ['reason'], message: 'is needed to cancel turns' })
  .meta({ id: 'CancelTurns' });
export type CancelTurnsBody = z.infer<typeof CancelTurnsBody>;

export const CancelledTurns = z
  .object({
    tenantId: TenantId,
    dryRun: z.boolean(),
    waiting: z.int().nonnegative().meta({ description: 'Turns that wait; of these and the next, none that was to be cancelled already.' }),
    running: z.int().nonnegative().meta({ description: 'Turns that run.' }),
  })
  .meta({ id: 'CancelledTurns' });
export type CancelledTurns = z.infer<typeof CancelledTurns>;
