import { z } from 'zod';
import { limits } from '../limits.ts';
import { ContactId } from '../turns/chat.ts';

/** The name of the contact's folder: a hash of its main address, or of a conversation whose contact has none. */
export const ErasureId = z.string().regex(/^[0-9a-f]{32}$/u, 'is not the id of an erasure');

/** POST /api/erasures: whom it is about, by an address that the contact writes under or by one of its conversations. */
export const ErasureBody = z
  .strictObject({ sender: z.string().min(1).max(limits.senderMaxCharacters).optional(), contact_id: ContactId.optional() })
  .refine(({ sender, contact_id: contactId }) => (sender === undefined) !== (contactId === undefined), {
    message: 'needs one of sender and contact_id',
    path: ['sender'],
  })
  .meta({ id: 'ErasureBody' });
export type ErasureBody = z.infer<typeof ErasureBody>;

const count = z.int().nonnegative();

/** How much was removed. What a process removed before it was killed is not counted again. */
export const ErasedCounts = z.object({
  sessions: count,
  turns: count,
  /** Notes about the contact. */
  notes: count,
  /** Entries of other notes that named the contact. */
  entries: count,
  uploads: count,
  deliveries: count,
  events: count,
  /** Turns with their streams in Redis. */
  streams: count,
});
export type ErasedCounts = z.infer<typeof ErasedCounts>;

/**
 * A place that names the contact, or may, and was left for the owner to look at. `cut`: entries were taken out, and
 * what is left may be about the contact without its name. `shared`: an upload that another conversation has, too.
 */
export const ErasurePlace = z.object({
  kind: z.enum(['note', 'file', 'session', 'schedule', 'upload']),
  /** Path or id. */
  ref: z.string(),
  why: z.enum(['named', 'cut', 'shared', 'unread']),
});
export type ErasurePlace = z.infer<typeof ErasurePlace>;

const report = {
  id: ErasureId,
  state: z.enum(['running', 'done']),
  requestedAt: z.iso.datetime(),
  finishedAt: z.iso.datetime().nullable(),
  /**
   * While it runs. `turns`: cancelled turns of the contact have not ended. `logs`: all is gone but records in
   * write-ahead logs, which go within about two minutes.
   */
  waitsFor: z.enum(['turns', 'logs']).nullable(),
  erased: ErasedCounts,
  lookAt: z.array(ErasurePlace),
  /** There are more places than are listed. */
  hasMore: z.boolean(),
};

export const ErasureReport = z.object(report).meta({ id: 'Erasure' });
export type ErasureReport = z.infer<typeof ErasureReport>;

/** What leads to the contact's data. It only grows while the erasure runs, and goes with its end. */
export const ErasureTraces = z.strictObject({
  /** Addresses, the main one first. */
  senders: z.array(z.string()),
  names: z.array(z.string()),
  sessionIds: z.array(z.string()),
  /** Turns and handoffs. */
  turnIds: z.array(z.string()),
  uploadIds: z.array(z.string()),
});
export type ErasureTraces = z.infer<typeof ErasureTraces>;

/**
 * tenants/<id>/settings/erasures/<id>.json while it runs; its report is in `done/` afterwards. `logs`: the segments
 * that still have records of the contact, once all else is gone.
 */
export const Erasure = z.strictObject({
  version: z.literal(1),
  ...report,
  traces: ErasureTraces,
  logs: z.array(z.string()).nullable(),
});
export type Erasure = z.infer<typeof Erasure>;

export const StoredErasureReport = z.strictObject({ version: z.literal(1), ...report });
