import type { TurnEvent, TurnStep } from '@concierge/contract';
import { firstEntryId, toEvent, toStep, type StreamEntry } from './stream-entry.ts';

export interface FoldedStream {
  readonly steps: readonly TurnStep[];
  readonly lastPublicId: string;
  /** Text after the last finished step is in the stream: it will come again. */
  readonly interruptedText: boolean;
  /** Calls whose start is in the stream and whose result is not. */
  readonly openCalls: ReadonlySet<string>;
}

/** What earlier attempts left in the stream. */
export function foldStream(entries: readonly StreamEntry[]): FoldedStream {
  const fold = new StreamFold();
  for (const entry of entries) fold.add(entry);
  return fold;
}

/**
 * A journal has no lease: a worker that froze between its last write to the stream and its journal adds, when it
 * resumes, steps that the next worker has already written there. Each step counts where it stands first.
 */
export function withoutRepeats(journal: readonly TurnStep[]): TurnStep[] {
  const first = new Map<string, TurnStep>();
  for (const step of journal) {
    const name = nameOf(step);
    if (!first.has(name)) first.set(name, step);
  }
  return [...first.values()];
}

function nameOf(step: TurnStep): string {
  switch (step.kind) {
    case 'prompt':
    case 'assistant':
    case 'said': {
      return step.message.id;
    }
    case 'intent': {
      return `intent ${step.callId}`;
    }
    case 'result': {
      return `result ${step.message.callId}`;
    }
    case 'nested_intent':
    case 'nested_result': {
      return `${step.kind} ${step.callId}`;
    }
    case 'compaction': {
      return `compaction ${String(step.startedAtMs)}`;
    }
  }
}

class StreamFold implements FoldedStream {
  readonly steps: TurnStep[] = [];
  readonly openCalls = new Set<string>();
  lastPublicId = firstEntryId;
  interruptedText = false;

  add(entry: StreamEntry): void {
    const step = toStep(entry);
    if (step !== null) {
      this.steps.push(step);
      if (step.kind === 'assistant' || step.kind === 'said') this.interruptedText = false;
      return;
    }
    this.lastPublicId = entry.id;
    const event = toEvent(entry);
    if (event !== null) this.#hear(event);
  }

  #hear(event: TurnEvent): void {
    if (event.type === 'text_delta') this.interruptedText = true;
    if (event.type === 'text_reset') this.interruptedText = false;
    if (event.type === 'text_reset' && event.data.reason === 'stream_lost') this.#forget();
    if (event.type === 'tool_call_start') this.openCalls.add(event.data.id);
    if (event.type === 'tool_result') this.openCalls.delete(event.data.id);
  }

  #forget(): void {
    this.steps.length = 0;
    this.openCalls.clear();
  }
}
