import { z } from 'zod';
import { TenantId } from './tenant.ts';

/** How many rows of one part of the index differ from the files. */
const PartDrift = z
  .object({
    added: z.int().nonnegative().meta({ description: 'In the files, not in the index.' }),
    changed: z.int().nonnegative().meta({ description: 'In both, and not the same.' }),
    removed: z.int().nonnegative().meta({ description: 'In the index, not in the files.' }),
  })
  .meta({ id: 'PartDrift' });

export const TenantDrift = z
  .object({
    tenantId: TenantId,
    drifted: z.boolean().meta({ description: 'True: anything differed.' }),
    drift: z
      .object({
        sessions: PartDrift.meta({ description: 'Conversations.' }),
        turns: PartDrift.meta({ description: 'Ended turns.' }),
        usage: PartDrift.meta({ description: 'What turns and removed conversations have used.' }),
        skills: PartDrift.meta({ description: 'Skills.' }),
        contacts: PartDrift.meta({ description: 'Contacts by whose names searches find conversations.' }),
        memory: PartDrift.meta({ description: 'Passages that memory is searched through and that were thought to be current.' }),
      })
      .meta({ description: 'By part of the index.' }),
  })
  .meta({ id: 'TenantDrift' });
export type TenantDrift = z.infer<typeof TenantDrift>;

/** POST /ops/api/reindex */
export const ReindexBody = z
  .strictObject({
    tenant: TenantId.optional(),
    dryRun: z.boolean().default(true).meta({ description: 'Compares, and changes nothing.' }),
    cursor: z.string().min(1).max(512).optional().meta({ description: 'The `nextCursor` of the answer before.' }),
  })
  .meta({ id: 'Reindex' });
export type ReindexBody = z.infer<typeof ReindexBody>;

export const Reindexed = z
  .object({
    dryRun: z.boolean(),
    tenants: z.array(TenantDrift).meta({ description: 'What differed, by tenant; put right unless it was a dry run.' }),
    nextCursor: z.string().nullable(),
  })
  .meta({ id: 'Reindexed' });
export type Reindexed = z.infer<typeof Reindexed>;

/** Rows that differed, all parts together. */
export function countDrift({ drift }: Pick<TenantDrift, 'drift'>): number {
  return Object.values(drift).reduce((sum, { added, changed, removed }) => sum + added + changed + removed, 0);
}
