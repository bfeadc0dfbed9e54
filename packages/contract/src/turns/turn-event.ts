import { z } from 'zod';
import { errorCodeNames } from '../errors/error-code.ts';
import { openList } from '../values/stored.ts';

export const finishReasons = ['stop', 'length', 'max_turns', 'content_filter', 'cancelled'] as const;
export const FinishReason = openList(z.enum(finishReasons));
export type FinishReason = z.infer<typeof FinishReason>;

/** JSON that came from a model or a client: any object. */
export const JsonObject = z.record(z.string(), z.unknown());
export type JsonObject = z.infer<typeof JsonObject>;

const tokens = z.int().nonnegative();

/** The data of each event, in the order in which they may follow one another (contract §3, "Events"). */
export const turnEventData = {
  session: z.object({ contact_id: z.string(), turnId: z.string() }),
  text_delta: z.object({ delta: z.string().min(1) }),
  tool_call_start: z.object({ id: z.string(), name: z.string(), input: JsonObject }),
  /**
   * Output of a long call before it ends: between its start and its end, never for a short call. It is a look at the
   * work, cut at `toolProgressMaxBytes`; the result has everything again, and nothing of it is stored with the session.
   */
  tool_call_progress: z.object({ id: z.string(), name: z.string(), delta: z.string().min(1) }),
  tool_call_end: z.object({ id: z.string(), name: z.string(), durationMs: z.int().nonnegative(), isError: z.boolean() }),
  tool_result: z.object({
    id: z.string(),
    name: z.string(),
    output: z.string(),
    truncated: z.literal(true).optional(),
    isError: z.boolean(),
  }),
  /**
   * `stream_lost`: everything of the turn so far, tool calls included, is void and comes again. Any other reason: the
   * text since the last tool result (or the start).
   */
  text_reset: z.object({ reason: z.enum(['worker_lost', 'fallback_model', 'restarted', 'stream_lost']) }),
  done: z.object({ inputTokens: tokens, outputTokens: tokens, finishReason: FinishReason }),
  error: z.object({ code: openList(z.enum(errorCodeNames)), message: z.string(), retryable: z.boolean(), turnId: z.string() }),
} as const;

export type TurnEventType = keyof typeof turnEventData;
export type TurnEvent = {
  [Type in TurnEventType]: { readonly type: Type; readonly data: z.infer<(typeof turnEventData)[Type]> };
}[TurnEventType];
export type TerminalEvent = Extract<TurnEvent, { type: 'done' | 'error' }>;

export function isTerminalEvent(event: { readonly type: string }): event is TerminalEvent {
  return event.type === 'done' || event.type === 'error';
}
