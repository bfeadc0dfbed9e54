import { z } from 'zod';
import { TurnStatus } from './turn.ts';

/**
 * What has changed of a tenant: a hint to read it again, not the change itself. Kinds: `turn` (accepted, begun or
 * ended), `session` (removed, or in the lists later than its turn ended), `handoff` (requested, taken or given back),
 * `schedule` (changed, or a run of it), `delivery` (ended). Later versions may bring others.
 */
export const FeedChange = z.object({
  kind: z.enum(['turn', 'session', 'handoff', 'schedule', 'delivery']),
  id: z.string(),
  /** Of a turn: its conversation. */
  contact_id: z.string().optional(),
  /** Of a turn: its state when this was written. */
  status: TurnStatus.optional(),
});
export type FeedChange = z.infer<typeof FeedChange>;
