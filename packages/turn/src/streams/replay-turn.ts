import {
  type AcceptedTurn,
  type TerminalEvent,
  type TurnStatus,
  type TurnEvent,
  toolCallEnd,
  toolCallStart,
  type SessionMessage,
  type TurnOutput,
  type TurnStep,
} from '@concierge/contract';
import { findSlot } from '@concierge/runtime';
import type { TenantScope } from '@concierge/tenant';
import type { Redis } from 'ioredis';
import { findEndedTurn } from '../ended-turns.ts';
import type { TurnRun } from '../runs/turn-run.ts';
import { compareIds, firstEntryId, readEntries, type StreamEntry, toEndEvent, toEvent } from './stream-entry.ts';
import { TurnFold } from './fold-stream.ts';

/** The largest number that ids compare exactly. */
const replayEpoch = String(Number.MAX_SAFE_INTEGER);

/** Whether a reader has the event from a replay, and so from a turn that has ended. */
export function isOfReplay(id: string): boolean {
  return id.startsWith(`${replayEpoch}-`);
}

/**
 * The stream of an ended turn, replayed from its session file: for readers that come after the stream expired or Redis
 * was emptied. Their ids have an epoch of their own, above that of every lease, and are the same each time: a reader
 * that is cut off in a replay resumes in it.
 * @param after the last event that the reader has seen; null when it has seen none
 * @returns null when no session contains the turn; nothing when the reader has seen it all
 */
export async function replayTurn(
  redis: Redis,
  { scope, turnId, after }: { readonly scope: TenantScope; readonly turnId: string; readonly after: string | null },
): Promise<StreamEntry[] | null> {
  const ended = await findEndedTurn(redis, scope, turnId);
  if (ended === undefined) return null;
  const messages = await readMessages(scope, { sessionId: ended.sessionId, turnId });
  const toEntry = (event: TurnEvent, seq: number): StreamEntry => ({
    id: `${replayEpoch}-${String(seq)}`,
    type: event.type,
    json: JSON.stringify(event.data),
  });
  const entries = [...messages.flatMap((message) => toTurnEvents(message)), toEndEvent(ended.record)].map((event, index) =>
    toEntry(event, index + 2),
  );
  if (after === null)
    return [{ id: firstEntryId, type: 'session', json: JSON.stringify({ contact_id: ended.sessionId, turnId }) }, ...entries];
  if (after === firstEntryId) return entries;
  if (isOfReplay(after)) return entries.filter(({ id }) => compareIds(id, after) > 0);
  return [toEntry(streamLost, 1), ...entries];
}

/** Emitted before a turn is replayed from its start: all that readers have of it, tool calls included, is void. */
const streamLost: TurnEvent = { type: 'text_reset', data: { reason: 'stream_lost' } };

type ShownMessage = SessionMessage | Omit<Extract<SessionMessage, { role: 'user' }>, 'sent'>;

/** The published session is the truth: a stream that differs from it or lacks a part is replayed. */
export async function replaySaved(redis: Redis, { scope, turn, writer }: TurnRun): Promise<void> {
  const messages = await readMessages(scope, turn);
  const entries = await readEntries(findSlot(redis, scope.tenantId), turn.turnId, null);
  if (isShown(entries, messages)) return;
  writer.emit(streamLost);
  for (const event of messages.flatMap((message) => toTurnEvents(message))) writer.emit(event);
}

/**
 * Emits the content of the session file for an ended turn whose inbox file is gone. A turn that no session contains was
 * removed by hand, or a backup was restored: there is nothing to answer, and readers get an error.
 * @returns how the turn ended
 */
export async function replayEnded(
  scope: TenantScope,
  turn: TurnOfSession,
  output: Pick<TurnOutput, 'emit'>,
): Promise<{ readonly event: TerminalEvent; readonly state: TurnStatus }> {
  const { sessionId, turnId } = turn;
  const record = (await scope.sessions.findTurn(sessionId, turnId)) ?? (await scope.index.findTurn(turnId).catch(() => undefined))?.record;
  if (record === undefined) {
    const data = { code: 'not_found', message: 'This turn is not in the inbox any more.', retryable: false, turnId } as const;
    return { event: { type: 'error', data }, state: 'failed' };
  }
  const messages = await readMessages(scope, turn);
  // Nothing is waited for between the reset and what takes its place: both go out in one write.
  output.emit(streamLost);
  for (const event of messages.flatMap((message) => toTurnEvents(message))) output.emit(event);
  return { event: toEndEvent(record), state: record.status };
}

type TurnOfSession = Pick<AcceptedTurn, 'sessionId' | 'turnId'>;

async function readMessages(scope: TenantScope, { sessionId, turnId }: TurnOfSession): Promise<ShownMessage[]> {
  const session = await scope.sessions.view(sessionId);
  return session?.messages.filter((message) => message.turnId === turnId) ?? [];
}

/** The events of a turn's message: the streamed content in one piece. */
function toTurnEvents(message: ShownMessage): TurnEvent[] {
  switch (message.role) {
    case 'user': {
      return [];
    }
    case 'assistant': {
      return [...toTextEvents(message), ...(message.toolCalls ?? []).map((call) => toolCallStart(call))];
    }
    case 'tool': {
      return toolCallEnd(message, 0);
    }
  }
}

/**
 * Restores the steps of the journal beside the inbox file, with their events, in a stream that has lost them. One
 * write, so that there is never half of it. `begun`: calls that run now, without a result yet.
 */
export function replaySteps(
  output: Pick<TurnOutput, 'emit' | 'record'>,
  steps: readonly TurnStep[],
  begun: ReadonlySet<string> = new Set(),
): void {
  output.emit(streamLost);
  const finished = new Set(steps.flatMap((step) => (step.kind === 'result' ? [step.message.callId] : [])));
  // Any other call is started by the attempt that continues.
  const hasStarted = (callId: string): boolean => finished.has(callId) || begun.has(callId);
  for (const step of steps) {
    if (step.kind === 'assistant' || step.kind === 'said') for (const event of toTextEvents(step.message)) output.emit(event);
    output.record(step);
    for (const event of eventsAfter(step, hasStarted)) output.emit(event);
  }
}

function eventsAfter(step: TurnStep, hasStarted: (callId: string) => boolean): TurnEvent[] {
  if (step.kind === 'result') return toolCallEnd(step.message, step.durationMs);
  const calls = step.kind === 'assistant' ? (step.message.toolCalls ?? []) : [];
  return calls.filter(({ id }) => hasStarted(id)).map((call) => toolCallStart(call));
}

/** Whether a reader of this stream sees what the session contains. Not so when another attempt's text was published. */
function isShown(entries: readonly StreamEntry[], messages: readonly ShownMessage[]): boolean {
  const fold = new TurnFold();
  for (const entry of entries) {
    const event = toEvent(entry);
    if (event !== null) fold.add(event);
  }
  const replies = messages.filter((message) => message.role === 'assistant');
  const results = messages.filter((message) => message.role === 'tool');
  const text = replies.map((message) => message.text).join('');
  return fold.text === text && fold.endedCalls.join() === results.map(({ callId }) => callId).join();
}

function toTextEvents({ text }: { readonly text: string }): TurnEvent[] {
  return text === '' ? [] : [{ type: 'text_delta', data: { delta: text } }];
}
