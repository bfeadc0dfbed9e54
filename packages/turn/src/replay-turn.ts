import { errorCodes, type TurnEvent, type TurnRecord } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';
import { eventsOf, streamLost } from './replay-steps.ts';
import { compareIds, firstEntryId, type StreamEntry } from './stream-entry.ts';

/** The largest number that ids compare exactly. */
const replayEpoch = String(Number.MAX_SAFE_INTEGER);

/**
 * The stream of an ended turn, replayed from its session file: for readers that come after the stream expired or Redis
 * was emptied. Their ids have an epoch of their own, above that of every lease, and are the same each time: a reader
 * that is cut off in a replay resumes in it.
 * @param after the last event that the reader has seen; null when it has seen none
 * @returns null when no session contains the turn; nothing when the reader has seen it all
 */
export async function replayTurn(scope: TenantScope, turnId: string, after: string | null): Promise<StreamEntry[] | null> {
  const indexed = await scope.index.findTurn(turnId);
  if (indexed === undefined) return null;
  const session = await scope.sessions.view(indexed.sessionId);
  const messages = session?.messages.filter((message) => message.turnId === turnId) ?? [];
  const entryOf = (event: TurnEvent, seq: number): StreamEntry => ({
    id: `${replayEpoch}-${String(seq)}`,
    type: event.type,
    json: JSON.stringify(event.data),
  });
  const told = [...messages.flatMap((message) => eventsOf(message)), endOf(indexed.record)].map((event, index) =>
    entryOf(event, index + 2),
  );
  if (after === null)
    return [{ id: firstEntryId, type: 'session', json: JSON.stringify({ contact_id: indexed.sessionId, turnId }) }, ...told];
  if (after === firstEntryId) return told;
  if (after.startsWith(`${replayEpoch}-`)) return told.filter(({ id }) => compareIds(id, after) > 0);
  return [entryOf(streamLost, 1), ...told];
}

/** The terminal event of a turn's record. */
export function endOf(record: TurnRecord): Extract<TurnEvent, { type: 'done' | 'error' }> {
  if (record.error !== null) {
    const { code, message, retryable = errorCodes[code].retryable } = record.error;
    return { type: 'error', data: { code, message, retryable, turnId: record.id } };
  }
  return { type: 'done', data: { ...record.usage, finishReason: record.finishReason ?? 'stop' } };
}
