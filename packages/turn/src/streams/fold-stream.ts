import type { TurnEvent, TurnStep, ChatReply, TerminalEvent } from '@concierge/contract';
import type { Inbox } from '@concierge/tenant';
import type { Redis } from 'ioredis';
import type { Lease } from '../lanes/lanes.ts';
import { compareIds, firstEntryId, readEntries, toEvent, toStep, type StreamEntry } from './stream-entry.ts';

/** The results of earlier attempts. */
export interface Earlier {
  readonly journal: readonly TurnStep[];
  readonly folded: FoldedStream;
  /** The number of entries in the stream; null when not counted. */
  readonly entries: number | null;
  /** The stream does not contain all of it. */
  readonly isLost: boolean;
}

/** Of a first attempt: its stream has the entry of its acceptance (accept.lua) and nothing else. */
export const nothingEarlier: Earlier = {
  journal: [],
  folded: { steps: [], lastPublicId: firstEntryId, interruptedText: false, openCalls: new Set() },
  entries: 1,
  isLost: false,
};

/** From the journal, and from the stream where there can be more in it. */
export async function readEarlier(redis: Redis, inbox: Pick<Inbox, 'readJournal'>, lease: Lease): Promise<Earlier> {
  const { turnId, attempt, cutEpoch } = lease;
  const journal = withoutRepeats(await inbox.readJournal(turnId));
  const entries = attempt > 1 || cutEpoch !== null ? await readEntries(redis, turnId, null) : [];
  const folded = foldStream(entries);
  const isLost = isStreamLost(folded, journal, lease) || isCut(entries, lease);
  return { journal, folded, entries: entries.length === 0 ? null : entries.length, isLost };
}

/**
 * Redis was started again since the turn was accepted, and no attempt has emitted a reset since: readers may have seen
 * entries that are lost.
 */
function isCut(entries: readonly StreamEntry[], { cutEpoch }: Lease): boolean {
  return cutEpoch !== null && !entries.some(({ id }) => compareIds(id, `${cutEpoch}-0`) > 0);
}

/** Redis came back without all of the stream: a step is in the stream before it is in the journal. */
function isStreamLost(folded: FoldedStream, journal: readonly TurnStep[], lease: Lease): boolean {
  const isEmpty = folded.steps.length === 0 && folded.lastPublicId === firstEntryId;
  return (lease.restored && isEmpty) || journal.length > folded.steps.length;
}

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
    const name = toStepName(step);
    if (!first.has(name)) first.set(name, step);
  }
  return [...first.values()];
}

function toStepName(step: TurnStep): string {
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

export type FoldedTurn =
  | { readonly kind: 'done'; readonly reply: ChatReply }
  | { readonly kind: 'error'; readonly error: Extract<TerminalEvent, { type: 'error' }>['data'] };

interface OpenCall {
  id: string;
  name: string;
  input: Record<string, unknown>;
  output: string;
  isError: boolean;
  hasEnded: boolean;
}

/** Folds a whole stream into the single JSON reply: its text is every delta that was not made void, joined. */
export class TurnFold {
  #contactId = '';
  #turnId = '';
  /** Text up to the last tool result: no reset reaches back behind it. */
  #settled = '';
  #text = '';
  readonly #calls = new Map<string, OpenCall>();

  /** The valid text so far. */
  get text(): string {
    return this.#settled + this.#text;
  }

  /** Ids of the calls that have a result, in the order of their starts. */
  get endedCalls(): string[] {
    return [...this.#calls.values()].filter(({ hasEnded }) => hasEnded).map(({ id }) => id);
  }

  /** @returns the outcome once the terminal event has been given, else null */
  add(event: TurnEvent): FoldedTurn | null {
    switch (event.type) {
      case 'session': {
        this.#contactId = event.data.contact_id;
        this.#turnId = event.data.turnId;
        return null;
      }
      case 'text_delta': {
        this.#text += event.data.delta;
        return null;
      }
      case 'text_reset': {
        this.#forget(event.data.reason);
        return null;
      }
      case 'tool_call_start': {
        this.#calls.set(event.data.id, { ...event.data, output: '', isError: false, hasEnded: false });
        return null;
      }
      case 'tool_call_progress':
      case 'tool_call_end': {
        return null;
      }
      case 'tool_result': {
        const call = this.#calls.get(event.data.id);
        if (call !== undefined) Object.assign(call, { output: event.data.output, isError: event.data.isError, hasEnded: true });
        this.#settled += this.#text;
        this.#text = '';
        return null;
      }
      case 'done': {
        const { finishReason, ...usage } = event.data;
        return {
          kind: 'done',
          reply: {
            contact_id: this.#contactId,
            turnId: this.#turnId,
            reply: this.text,
            toolCalls: [...this.#calls.values()].map(({ hasEnded: _hasEnded, ...call }) => call),
            usage,
            finishReason,
          },
        };
      }
      case 'error': {
        return { kind: 'error', error: event.data };
      }
    }
  }

  #forget(reason: Extract<TurnEvent, { type: 'text_reset' }>['data']['reason']): void {
    this.#text = '';
    if (reason !== 'stream_lost') return;
    this.#settled = '';
    this.#calls.clear();
  }
}
