import {
  cutText,
  limits,
  type SessionMessage,
  type ToolCall,
  type TurnOutput,
  type UploadRef,
  type TurnEvent,
  type TurnStep,
} from '@concierge/contract';
import type { Model, ModelTool } from '@concierge/model';
import type { Conversation } from './conversation.ts';
import type { ShownImages } from './model-messages.ts';

export interface ToolOutcome {
  readonly output: string;
  readonly isError: boolean;
  /** Images that the model is shown with the results of this round. */
  readonly attachments?: readonly UploadRef[];
}

/** The agent's tools as the loop sees them: already filtered; they throw only on an abort. */
export interface LoopTools {
  readonly offered: readonly ModelTool[];
  /** True when running the tool twice could do harm. False for a name that is no tool of this agent. */
  hasSideEffect(name: string): boolean;
  /**
   * True when a second run of the same call takes up what the first one began, so that the call must outlive any crash.
   */
  resumes(name: string): boolean;
  /**
   * Every failure is an outcome. Rejects only with the signal's reason. `progress` receives what the tool reports while
   * it runs.
   */
  call(call: ToolCall, signal: AbortSignal, progress?: (delta: string) => void): Promise<ToolOutcome>;
}

/**
 * Compacts before a model call. Resolves to whether anything was made smaller. `overflowed`: the provider has refused
 * the context as too long.
 */
export type Compact = (reason: 'due' | 'overflowed') => Promise<boolean>;

/** What answers: a model with a system prompt. */
export interface LoopAgent {
  readonly model: Model;
  readonly system: string;
  /** Model calls with tools that a turn may make. */
  readonly maxTurns: number;
  /**
   * The images of these messages that the model is shown. Asked before every model call, for tools may have shown new
   * ones.
   */
  loadImages(messages: readonly SessionMessage[]): Promise<ShownImages>;
}

/** Everything that one turn's loop works with. */
export interface LoopRun {
  readonly conversation: Conversation;
  readonly agent: LoopAgent;
  readonly tools: LoopTools;
  readonly signal: AbortSignal;
  readonly writer: TurnOutput;
  readonly compact: Compact;
  /** Calls whose `tool_call_start` an earlier attempt has already published. */
  readonly startedCalls: ReadonlySet<string>;
}

type CallStep = Extract<TurnStep, { kind: 'intent' | 'result' | 'nested_intent' | 'nested_result' }>;

/**
 * A call that may run again is only noted. Around a side effect each step is written, which fails once another worker
 * has the session, and then put on disk: an emptied Redis must not make the effect happen twice. The same holds for a
 * call that takes up what it began: asked anew, the model would make another one.
 */
export async function journalCall(
  { conversation, tools, writer }: Pick<LoopRun, 'conversation' | 'tools' | 'writer'>,
  step: CallStep,
  events: TurnEvent[] = [],
): Promise<void> {
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

/** Output that a call reports within this time goes out together. */
const GATHER_MS = 250;
const MORE_NOTE = '\n[there is more: it is in the result]\n';

/**
 * Emits what a call reports while it runs to the readers of the turn. quiet (the call may be short: nothing is emitted)
 * → emitting (some of it at a time) → full (the limit is reached); disposed when the call has ended: nothing comes
 * after that.
 */
export class CallProgress implements Disposable {
  readonly #call: Pick<ToolCall, 'id' | 'name'>;
  readonly #emit: (event: TurnEvent) => void;
  #gathered = '';
  #bytesLeft: number = limits.toolProgressMaxBytes;
  #state: 'quiet' | 'emitting' | 'full' | 'disposed' = 'quiet';
  #timer: NodeJS.Timeout;

  constructor(call: Pick<ToolCall, 'id' | 'name'>, emit: (event: TurnEvent) => void) {
    this.#call = call;
    this.#emit = emit;
    this.#timer = setTimeout(() => this.#emitGathered(), limits.toolProgressAfterMs);
  }

  hear(delta: string): void {
    if (this.#state === 'full' || this.#state === 'disposed') return;
    // While the state is quiet, the call may report any amount; no more than this can be emitted.
    if (this.#gathered.length <= limits.toolProgressMaxBytes) this.#gathered += delta;
  }

  [Symbol.dispose](): void {
    this.#state = 'disposed';
    clearTimeout(this.#timer);
  }

  #emitGathered(): void {
    this.#state = 'emitting';
    const { text, isCut } = cutText(this.#gathered.toWellFormed(), this.#bytesLeft);
    this.#gathered = '';
    this.#bytesLeft -= Buffer.byteLength(text);
    const delta = isCut ? text + MORE_NOTE : text;
    const { id, name } = this.#call;
    if (delta !== '') this.#emit({ type: 'tool_call_progress', data: { id, name, delta } });
    if (isCut) this.#state = 'full';
    else this.#timer = setTimeout(() => this.#emitGathered(), GATHER_MS);
  }
}
