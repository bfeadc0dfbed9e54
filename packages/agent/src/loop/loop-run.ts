import type { ModelUsage, SessionMessage, ToolCall, TurnOutput, UploadRef } from '@concierge/contract';
import type { Model, ModelTool } from '@concierge/model';
import type { Conversation } from './conversation.ts';
import type { ShownImages } from './model-messages.ts';

export interface ToolOutcome {
  readonly output: string;
  readonly isError: boolean;
  /** Images that the model is shown with the results of this round. */
  readonly attachments?: readonly UploadRef[];
  /** Of models that the tool called. */
  readonly usage?: ModelUsage | undefined;
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
  /** W3C Trace Context of the turn, where its spans are exported. */
  readonly traceparent?: string | undefined;
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
  /** Called before each model call; rejects when the turn goes on elsewhere. */
  readonly handOn: () => Promise<void>;
  /** Calls whose `tool_call_start` an earlier attempt has already published. */
  readonly startedCalls: ReadonlySet<string>;
}
