import {
  viewStep,
  type AssistantMessage,
  type FinishReason,
  type HistoryLine,
  type ModelUsage,
  type Session,
  type SessionMessage,
  type SessionSummary,
  type ToolCall,
  type ToolMessage,
  type TraceFacts,
  type TurnEvent,
  type TurnOutput,
  type TurnStep,
  type TurnStepView,
  type Usage,
  type UserMessage,
} from '@concierge/contract';
import type { ModelMessage } from '@concierge/model';
import { compactMessages, NestedCalls, summaryWith, type NestedCall } from './rare-steps.ts';

type AssistantStep = Extract<TurnStep, { kind: 'assistant' }>;
type PromptStep = Extract<TurnStep, { kind: 'prompt' }>;
type CompactionStep = Extract<TurnStep, { kind: 'compaction' }>;

/** A call of the last reply and how far it came. */
export interface OpenCall {
  readonly call: ToolCall;
  /** Position among the calls of its reply. */
  readonly index: number;
  /** An intent was journaled: the tool may have run. */
  readonly intended: boolean;
  /** What its command had called through the dispatcher, in order. */
  readonly nested: readonly NestedCall[];
}

/** What was made of messages before: the same objects again, so that what is made of those can be kept, too. */
export type KnownMessages = Map<SessionMessage | SessionSummary, ModelMessage>;

export type ConversationStart = Pick<Session, 'id' | 'summary' | 'messages' | 'messageCount' | 'contextTokens'>;

/**
 * The session while a turn works on it. It changes only by `apply`, with the same steps that are journaled: a
 * recovering attempt that applies the journal stands exactly where the previous one stood. Per round: `assistant` (open
 * calls) → `intent`, `result` for each call → results in the order of the calls → `assistant` …, until a reply has no
 * calls.
 */
export class Conversation {
  readonly sessionId: string;
  readonly turnId: string;
  readonly tally = new TurnUsage();
  readonly archived: HistoryLine[] = [];
  /** What the model was sent for messages in earlier calls of the turn. */
  readonly known: KnownMessages = new Map();
  #messages: SessionMessage[];
  #summary: SessionSummary | null;
  #contextTokens: Session['contextTokens'];
  #messageCount: number;
  #prompt: PromptStep | undefined;
  #replies = 0;
  #lastReply: AssistantStep | undefined;
  readonly #callIds = new Set<string>();
  readonly #intended = new Set<string>();
  /** Made with the first of them. */
  #nested: NestedCalls | undefined;
  readonly #results = new Map<string, ToolMessage>();
  #partial = '';
  #firstHeardAtMs: number | null = null;

  constructor(session: ConversationStart, turnId: string) {
    this.sessionId = session.id;
    this.turnId = turnId;
    this.#messages = [...session.messages];
    this.#summary = session.summary;
    this.#contextTokens = session.contextTokens;
    this.#messageCount = session.messageCount;
  }

  get messages(): readonly SessionMessage[] {
    return this.#messages;
  }

  get summary(): SessionSummary | null {
    return this.#summary;
  }

  /**
   * HEARTBEAT as this conversation has shown it to the model: its content, empty where the model saw that it is empty,
   * undefined where it was never shown.
   */
  get heartbeat(): string | undefined {
    return lastHeartbeat(this.#messages) ?? this.#summary?.heartbeat;
  }

  get contextTokens(): Session['contextTokens'] {
    return this.#contextTokens;
  }

  /** Counts the whole conversation, messages that were moved to the history included. */
  get messageCount(): number {
    return this.#messageCount;
  }

  /** The turn's first message has been added: the user's, or else what a staff member wrote. */
  get hasPrompt(): boolean {
    return this.#prompt !== undefined || this.#replies > 0;
  }

  /** The user's message of this turn. */
  get prompt(): UserMessage | undefined {
    return this.#prompt?.message;
  }

  /** Turns whose messages are answered with this one and which end with it. */
  get joined(): readonly string[] {
    return this.#prompt?.joined ?? [];
  }

  /** Number of finished replies of this turn, by any author. */
  get replies(): number {
    return this.#replies;
  }

  /** Derived from the turn and the round, so that a repeated attempt gives the same message the same id. */
  get nextReplyId(): string {
    return `${this.turnId}.${String(this.#replies + 1)}`;
  }

  /** Whether the last reply of this turn has no calls. */
  get answered(): boolean {
    return this.#lastReply !== undefined && this.#lastReply.message.toolCalls === undefined;
  }

  /** Text of the current reply so far; empty between replies. */
  get partialText(): string {
    return this.#partial;
  }

  get firstHeardAtMs(): number | null {
    return this.#firstHeardAtMs;
  }

  hear(delta: string): void {
    this.#firstHeardAtMs ??= Date.now();
    this.#partial += delta;
  }

  /** Discards the current reply's text so far. @returns whether there was any */
  voidPartial(): boolean {
    const wasHeard = this.#partial !== '';
    this.#partial = '';
    return wasHeard;
  }

  /** Calls through the dispatcher in this turn so far. */
  get nestedCalls(): number {
    return this.#nested?.count ?? 0;
  }

  /** Calls of the last reply that have no result yet, in call order. */
  openCalls(): OpenCall[] {
    const calls = this.#lastReply?.message.toolCalls ?? [];
    return calls
      .map((call, index) => ({ call, index, intended: this.#intended.has(call.id), nested: this.#nested?.of(call.id) ?? [] }))
      .filter(({ call }) => !this.#results.has(call.id));
  }

  resultId(index: number): string {
    return `${this.turnId}.${String(this.#replies)}.${String(index + 1)}`;
  }

  /** Providers repeat call ids from round to round; events, journal and results need one id per call of a turn. */
  withUniqueIds(calls: readonly ToolCall[]): ToolCall[] {
    const taken = new Set(this.#callIds);
    return calls.map((call, index) => {
      const unique = call.id !== '' && !taken.has(call.id) ? call.id : `call_${String(this.#replies + 1)}_${String(index + 1)}_${call.id}`;
      taken.add(unique);
      return { ...call, id: unique };
    });
  }

  apply(step: TurnStep): void {
    this.tally.count(step);
    switch (step.kind) {
      case 'prompt':
        this.#prompt = step;
        this.#push(step.message);
        return;
      case 'assistant':
        this.#applyReply(step);
        return;
      case 'said':
        this.#replies += 1;
        this.#push(step.message);
        return;
      case 'intent':
        this.#intended.add(step.callId);
        return;
      case 'result':
        this.#applyResult(step.message);
        return;
      case 'nested_intent':
        (this.#nested ??= new NestedCalls()).begin(step);
        return;
      case 'nested_result':
        (this.#nested ??= new NestedCalls()).finish(step);
        return;
      case 'compaction':
        this.#applyCompaction(step);
        return;
    }
  }

  /**
   * Ends the conversation where it stands, because the turn was cancelled or failed: the text so far stays as a partial
   * message and every open call is closed with `note`. Returns the results made up for open calls, in call order.
   */
  closeOpenCalls(note: string): ToolMessage[] {
    const at = new Date().toISOString();
    const closed = this.openCalls().map(({ call, index }): ToolMessage => ({
      id: this.resultId(index),
      turnId: this.turnId,
      at,
      role: 'tool',
      callId: call.id,
      name: call.name,
      output: note,
      isError: true,
    }));
    for (const message of closed) this.#applyResult(message);
    if (this.#partial !== '') this.#push(this.#partialReply(at));
    if (this.#firstHeardAtMs !== null) this.tally.heardAt(this.#firstHeardAtMs);
    this.#partial = '';
    return closed;
  }

  finishReason(maxTurns: number): FinishReason {
    if (this.#replies > maxTurns) return 'max_turns';
    const reason = this.#lastReply?.finishReason ?? 'stop';
    return reason === 'tool_calls' ? 'stop' : reason;
  }

  #applyReply(step: AssistantStep): void {
    this.#replies += 1;
    this.#lastReply = step;
    this.#intended.clear();
    this.#results.clear();
    this.#partial = '';
    this.#firstHeardAtMs = null;
    for (const call of step.message.toolCalls ?? []) this.#callIds.add(call.id);
    this.#push(step.message);
    // Without figures from the provider the next decision has to estimate all messages.
    const tokens = step.usage.inputTokens + step.usage.outputTokens;
    this.#contextTokens = step.usage.inputTokens > 0 ? { tokens, messages: this.#messages.length } : null;
  }

  /** Results are finished in any order; they join the conversation together, in the order of their calls. */
  #applyResult(message: ToolMessage): void {
    this.#results.set(message.callId, message);
    const calls = this.#lastReply?.message.toolCalls ?? [];
    if (this.#results.size < calls.length) return;
    for (const call of calls) {
      const result = this.#results.get(call.id);
      if (result !== undefined) this.#push(result);
    }
  }

  #applyCompaction(step: CompactionStep): void {
    const known = this.heartbeat;
    const { moved, kept } = compactMessages(this.#messages, step);
    for (const message of moved) this.archived.push({ kind: 'message', message });
    this.#messages = kept;
    if (moved.length > 0) this.#summary = step.summary;
    // The summary's HEARTBEAT stays known after the message that showed it has moved.
    if (this.#summary !== null) this.#summary = summaryWith(this.#summary, lastHeartbeat(kept) === undefined ? known : undefined);
    this.#contextTokens = null;
  }

  #push(message: SessionMessage): void {
    this.#messages.push(message);
    this.#messageCount += 1;
  }

  #partialReply(at: string): AssistantMessage {
    return { id: this.nextReplyId, turnId: this.turnId, at, role: 'assistant', text: this.#partial, partial: true };
  }
}

function lastHeartbeat(messages: readonly SessionMessage[]): string | undefined {
  const shown = messages.findLast((message) => message.role === 'user' && message.heartbeat !== undefined);
  return shown?.role === 'user' ? shown.heartbeat : undefined;
}

interface JournalingRun {
  readonly conversation: Conversation;
  readonly tools: Readonly<Record<'hasSideEffect' | 'resumes', (name: string) => boolean>>;
  readonly writer: TurnOutput;
}

type CallStep = Extract<TurnStep, { kind: 'intent' | 'result' | 'nested_intent' | 'nested_result' }>;

/**
 * A call that may run again is only noted. Around a side effect each step is written, which fails once another worker
 * has the session, and then put on disk: an emptied Redis must not make the effect happen twice. The same holds for a
 * call that takes up what it began: asked anew, the model would make another one.
 */
export async function journalCall({ conversation, tools, writer }: JournalingRun, step: CallStep, events: TurnEvent[] = []): Promise<void> {
  const name = step.kind === 'result' ? step.message.name : step.name;
  if (tools.hasSideEffect(name) || tools.resumes(name)) {
    await writer.step(step, events);
    await writer.persist();
  } else {
    writer.record(step);
    for (const event of events) writer.emit(event);
  }
  conversation.apply(step);
}

/** What a turn has cost and when: counted from the same steps that make the conversation, once per model call. */
export class TurnUsage {
  readonly #models = new Map<string, ModelUsage>();
  readonly steps: TurnStepView[] = [];
  /** What this attempt's first model call was sent, and which model was to answer. Noted by every attempt anew. */
  prompt: { readonly facts: NonNullable<TraceFacts['prompt']>; readonly model: string } | undefined;
  /** The model of the last reply. */
  answeredBy: string | undefined;
  #firstTextAtMs: number | null = null;

  get models(): ModelUsage[] {
    return [...this.#models.values()];
  }

  get usage(): Usage {
    const models = this.models;
    return {
      inputTokens: models.reduce((sum, model) => sum + model.inputTokens, 0),
      outputTokens: models.reduce((sum, model) => sum + model.outputTokens, 0),
    };
  }

  get firstTextAt(): string | null {
    return this.#firstTextAtMs === null ? null : new Date(this.#firstTextAtMs).toISOString();
  }

  /** Text of a reply that never became a step counts as first text too. */
  heardAt(ms: number): void {
    this.#firstTextAtMs ??= ms;
  }

  count(step: TurnStep): void {
    const view = viewStep(step);
    if (view !== null) this.steps.push(view);
    switch (step.kind) {
      case 'said':
        this.heardAt(Date.parse(step.message.at));
        return;
      case 'assistant':
        if (step.firstTextAtMs !== null) this.heardAt(step.firstTextAtMs);
        this.answeredBy = step.usage.model;
        this.#addUsage(step.usage);
        return;
      case 'compaction':
      case 'result':
      case 'nested_result':
        this.#addUsage(step.usage);
        return;
      case 'prompt':
      case 'intent':
      case 'nested_intent':
        return;
    }
  }

  #addUsage(usage: ModelUsage | null | undefined): void {
    if (usage === null || usage === undefined) return;
    const key = `${usage.model} ${String(usage.ownKey === true)}`;
    const before = this.#models.get(key);
    this.#models.set(key, before === undefined ? usage : sumUsage(before, usage));
  }
}

/** Of one model, with the same key. */
export function sumUsage(left: ModelUsage, right: ModelUsage): ModelUsage {
  return {
    model: left.model,
    calls: left.calls + right.calls,
    inputTokens: left.inputTokens + right.inputTokens,
    outputTokens: left.outputTokens + right.outputTokens,
    cachedInputTokens: left.cachedInputTokens + right.cachedInputTokens,
    costUsd: left.costUsd === null && right.costUsd === null ? null : (left.costUsd ?? 0) + (right.costUsd ?? 0),
    ...(left.ownKey === true && { ownKey: left.ownKey }),
  };
}
