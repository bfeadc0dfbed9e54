import { toolCallEnd, toolCallStart, type SessionMessage, type TurnEvent, type TurnOutput, type TurnStep } from '@concierge/contract';
import { TurnFold } from './fold-events.ts';
import { toEvent, type StreamEntry } from './stream-entry.ts';

/** Emitted before a turn is replayed from its start: all that readers have of it, tool calls included, is void. */
export const streamLost: TurnEvent = { type: 'text_reset', data: { reason: 'stream_lost' } };

type Told = SessionMessage | Omit<Extract<SessionMessage, { role: 'user' }>, 'sent'>;

/** The events of a turn's message: the streamed content in one piece. */
export function eventsOf(message: Told): TurnEvent[] {
  switch (message.role) {
    case 'user': {
      return [];
    }
    case 'assistant': {
      return [...textOf(message), ...(message.toolCalls ?? []).map((call) => toolCallStart(call))];
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
    if (step.kind === 'assistant' || step.kind === 'said') for (const event of textOf(step.message)) output.emit(event);
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
export function isShown(entries: readonly StreamEntry[], messages: readonly Told[]): boolean {
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

function textOf({ text }: { readonly text: string }): TurnEvent[] {
  return text === '' ? [] : [{ type: 'text_delta', data: { delta: text } }];
}
