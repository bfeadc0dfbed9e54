import { cutText } from '../values/text.ts';
import { limits } from '../limits.ts';
import type { SessionMessage, ToolCall, ToolMessage, TurnStep } from './session.ts';
import { JsonObject, type TurnEvent } from './turn-event.ts';
import type { ModelUsage, PromptPart, TurnStepView } from './turn.ts';

/** Where the events and steps of a running turn go: its stream and its journal. */
export interface TurnOutput {
  /** Text is coalesced for a few milliseconds; everything keeps its order. */
  emit(event: TurnEvent): void;
  /**
   * Journals a step with the next write, which it neither causes nor waits for: what a crash forgets of it is done
   * again.
   */
  record(step: TurnStep): void;
  /**
   * Journals the step after everything emitted so far, publishes `events` with it, and resolves once that is written.
   * Rejects when the lease is lost.
   */
  step(step: TurnStep, events?: readonly TurnEvent[]): Promise<void>;
  /** Resolves when every step so far is on disk, where a lost Redis cannot make it run again. */
  persist(): Promise<void>;
  /** Resolves once everything so far is in the stream. */
  flush(): Promise<void>;
}

/** The event that announces a call. Arguments that cannot be read are shown as none. */
export function toolCallStart({ id, name, arguments: text }: ToolCall): TurnEvent {
  const input = readArguments(text);
  return { type: 'tool_call_start', data: { id, name, input: input.ok ? input.value : {} } };
}

/** The two events that close a call, in order. The output is as long as an event may be. */
export function toolCallEnd({ callId: id, name, isError, output }: ToolMessage, durationMs: number): TurnEvent[] {
  const shown = cutText(output, limits.toolOutputEventMaxBytes);
  return [
    { type: 'tool_call_end', data: { id, name, durationMs, isError } },
    { type: 'tool_result', data: { id, name, output: shown.text, ...(shown.isCut && { truncated: true }), isError } },
  ];
}

/**
 * One Server-Sent Event as this service writes it: `event`, one `data` line, `id`, blank line (WHATWG HTML,
 * "Server-sent events"). `id` is the stream entry's own, so `Last-Event-ID` is a position in the stream.
 */
export function encodeServerSentEvent(type: string, dataJson: string, id: string): string {
  return `event: ${type}\ndata: ${dataJson}\nid: ${id}\n\n`;
}

type ReadArguments = { readonly ok: true; readonly value: JsonObject } | { readonly ok: false; readonly reason: string };

/** A model's arguments as an object. Empty text is no arguments. The reason of a refusal is meant for the model. */
export function readArguments(text: string): ReadArguments {
  if (text.trim() === '') return { ok: true, value: {} };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { ok: false, reason: `The arguments are not valid JSON: ${error instanceof Error ? error.message : 'unreadable'}` };
  }
  // Parse takes a million levels, and stringify throws at twenty thousand.
  if (isDeeper(value, limits.jsonMaxDepth)) {
    return { ok: false, reason: `The arguments are nested deeper than ${String(limits.jsonMaxDepth)} levels.` };
  }
  const object = JsonObject.safeParse(value);
  return object.success ? { ok: true, value: object.data } : { ok: false, reason: 'The arguments must be one JSON object.' };
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((item) => isDeeper(item, levels - 1));
}

/** A finished step as lists, records and the console show it; null for a step that is only bookkeeping. */
export function viewStep(step: TurnStep): TurnStepView | null {
  switch (step.kind) {
    case 'prompt':
    case 'said':
    case 'intent':
    case 'nested_intent':
      return null;
    case 'assistant':
      return { kind: 'model', name: step.usage.model, ...viewTimes(step), isError: false, ...viewUsage(step.usage), ...viewCall(step) };
    case 'result':
      return { kind: 'tool', name: step.message.name, ...viewTimes(step), isError: step.message.isError };
    case 'nested_result':
      return { kind: 'tool', name: step.name, within: step.within, ...viewTimes(step), isError: step.isError };
    case 'compaction': {
      const name = step.summary === null ? 'prune' : 'summarise';
      return { kind: 'compaction', name, ...viewTimes(step), isError: step.failed === true, ...viewUsage(step.usage) };
    }
  }
}

export function viewSteps(steps: readonly TurnStep[]): TurnStepView[] {
  return steps.map((step) => viewStep(step)).filter((view) => view !== null);
}

type Times = Extract<TurnStep, { startedAtMs: number }>;

function viewTimes({ startedAtMs, durationMs }: Times): Pick<TurnStepView, 'startedAt' | 'durationMs'> {
  return { startedAt: new Date(startedAtMs).toISOString(), durationMs: Math.max(0, Math.round(durationMs)) };
}

type ViewedUsage = Pick<TurnStepView, 'usage' | 'cachedInputTokens' | 'costUsd'>;

function viewUsage(usage: ModelUsage | null): ViewedUsage {
  if (usage === null) return {};
  const { inputTokens, outputTokens, cachedInputTokens, costUsd } = usage;
  return {
    usage: { inputTokens, outputTokens },
    ...(cachedInputTokens > 0 && { cachedInputTokens }),
    ...(costUsd !== null && { costUsd }),
  };
}

function viewCall({ startedAtMs, firstTextAtMs, failedAttempts }: Extract<TurnStep, { kind: 'assistant' }>): ViewedCall {
  const firstTextMs = firstTextAtMs === null ? {} : { firstTextMs: Math.max(0, Math.round(firstTextAtMs - startedAtMs)) };
  return { ...firstTextMs, ...(failedAttempts !== undefined && { failedAttempts }) };
}

type ViewedCall = Pick<TurnStepView, 'firstTextMs' | 'failedAttempts'>;

/** Text of any kind, roughly: an estimate by length costs a turn nothing. */
const CHARACTERS_PER_TOKEN = 4;
export const PROMPT_PARTS_MAX = 64;

/** A part by its length in characters, and the digest of its text where that is kept. */
export type MeasuredPart = readonly [name: string, characters: number, digest?: string];

/** The parts of a prompt by name; empty ones are left out. */
export function toPromptParts(measured: readonly MeasuredPart[]): PromptPart[] {
  return measured
    .filter(([, length]) => length > 0)
    .slice(-PROMPT_PARTS_MAX)
    .map(([name, length, digest]) => ({
      name,
      tokens: Math.ceil(length / CHARACTERS_PER_TOKEN),
      ...(digest !== undefined && { digest }),
    }));
}

/** Characters of messages as a model is sent them. */
export function countPromptCharacters(messages: readonly SessionMessage[]): number {
  return messages.reduce((sum, message) => sum + countCharacters(message), 0);
}

function countCharacters(message: SessionMessage): number {
  switch (message.role) {
    case 'user':
      return message.sent.length;
    case 'assistant':
      return (message.toolCalls ?? []).reduce(
        (sum, { name, arguments: given }) => sum + name.length + given.length,
        message.text.length + (message.reasoning?.length ?? 0),
      );
    case 'tool':
      return message.pruned === true ? 0 : message.output.length;
  }
}
