import type { TurnStep } from '@concierge/contract';
import { isPublic, toEvent, toStep, type StreamEntry } from './stream-entry.ts';

export interface FoldedStream {
  readonly steps: readonly TurnStep[];
  readonly lastPublicId: string;
  /** Text after the last finished step is out: it will come again. */
  readonly interruptedText: boolean;
  /** Calls whose start is out and whose result is not. */
  readonly openCalls: ReadonlySet<string>;
}

/** What earlier attempts left in the stream. */
export function foldStream(entries: readonly StreamEntry[]): FoldedStream {
  const steps: TurnStep[] = [];
  const openCalls = new Set<string>();
  let lastPublicId = '0-1';
  let interruptedText = false;
  for (const entry of entries) {
    if (isPublic(entry)) lastPublicId = entry.id;
    const step = toStep(entry);
    if (step !== null) {
      steps.push(step);
      if (step.kind === 'assistant') interruptedText = false;
      continue;
    }
    const event = toEvent(entry);
    if (event?.type === 'text_delta') interruptedText = true;
    if (event?.type === 'text_reset') interruptedText = false;
    if (event?.type === 'tool_call_start') openCalls.add(event.data.id);
    if (event?.type === 'tool_result') openCalls.delete(event.data.id);
  }
  return { steps, lastPublicId, interruptedText, openCalls };
}
