import { z } from 'zod';

/** A hundred years. */
const DAYS_MAX = 36_500;
const Days = z.int().min(1).max(DAYS_MAX);

/** After how many days what a tenant has is removed by itself; what has no number is kept. */
export const RetentionRule = z
  .strictObject({
    sessionsDays: Days.optional().meta({ description: 'Conversations, counted from their last message.' }),
    historyDays: Days.optional().meta({ description: 'What compaction took out of conversations, counted from the last time it did.' }),
    uploadsDays: Days.optional().meta({ description: 'Uploaded files, counted from the upload; conversations keep their names.' }),
  })
  .meta({ id: 'RetentionRule' });
export type RetentionRule = z.infer<typeof RetentionRule>;

/** A part of a JSON merge patch (RFC 7396): null removes a number. */
export const RetentionPatch = z.strictObject({
  sessionsDays: Days.nullable().optional(),
  historyDays: Days.nullable().optional(),
  uploadsDays: Days.nullable().optional(),
});

const Counted = z.object({ count: z.int().nonnegative(), bytes: z.int().nonnegative() });

/** What a rule removes, or would remove now. */
export const RetentionReport = z
  .object({
    rule: RetentionRule,
    sessions: z.object({
      count: z.int().nonnegative(),
      examples: z.array(z.string()).max(20).meta({ description: 'Ids of some of them, the newest first.' }),
    }),
    history: Counted.meta({ description: 'Of conversations that stay.' }),
    uploads: Counted,
    hasMore: z.boolean().meta({ description: 'There are more than one look counts.' }),
  })
  .meta({ id: 'RetentionReport' });
export type RetentionReport = z.infer<typeof RetentionReport>;
