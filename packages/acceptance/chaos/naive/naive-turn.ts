import { z } from 'zod';

/** Everything about a turn is in its job: when the job is gone, so is the turn. */
export const NaiveTurn = z.object({ turnId: z.string(), tenantId: z.string(), sessionId: z.string(), agent: z.string(), text: z.string() });
export type NaiveTurn = z.infer<typeof NaiveTurn>;

export const queueName = 'naive-turns';

export function eventsKey(turnId: string): string {
  return `naive:events:${turnId}`;
}
