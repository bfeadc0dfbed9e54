import { AppError, type TurnStep } from '@concierge/contract';
import type { ModelEvent } from '@concierge/model';
import type { LoopRun } from './loop-run.ts';
import { modelMessages } from './model-messages.ts';

type ModelEnd = Extract<ModelEvent, { type: 'end' }>;
type AssistantStep = Extract<TurnStep, { kind: 'assistant' }>;

/**
 * One model call, streamed to the writer and journaled as a step. A reply that ends without an end is a provider's
 * error.
 */
export async function streamReply(run: LoopRun, withTools: boolean): Promise<void> {
  const { conversation, signal, writer } = run;
  const startedAtMs = Date.now();
  let end: ModelEnd | undefined;
  const images = await run.imagesOf(conversation.messages);
  for await (const event of run.model.stream(
    {
      system: run.system,
      messages: modelMessages(conversation, images),
      tools: withTools ? run.tools.offered : [],
      conversationId: conversation.sessionId,
    },
    signal,
  )) {
    end = hear(run, event) ?? end;
  }
  // A stream that is cut by the signal may just end: the text so far is then partial, not an answer.
  signal.throwIfAborted();
  if (end === undefined) throw new AppError('provider_error', 'The model ended its reply without finishing it.');
  const step = assistantStep(run, end, startedAtMs);
  writer.record(step);
  conversation.apply(step);
}

function hear(run: LoopRun, event: ModelEvent): ModelEnd | undefined {
  switch (event.type) {
    case 'text':
      if (event.delta === '') return undefined;
      run.conversation.hear(event.delta);
      run.writer.emit({ type: 'text_delta', data: { delta: event.delta } });
      return undefined;
    case 'reset':
      // Nothing has been emitted yet: nothing is void, and a reader need not know.
      if (run.conversation.voidPartial()) run.writer.emit({ type: 'text_reset', data: { reason: event.reason } });
      return undefined;
    case 'end':
      return event;
  }
}

/** The reply as it is kept. Tool calls of a reply that was cut are dropped: half an argument must never run. */
function assistantStep(run: LoopRun, end: ModelEnd, startedAtMs: number): AssistantStep {
  const { conversation } = run;
  const runsTools = end.finishReason === 'stop' || end.finishReason === 'tool_calls';
  const lastCall = conversation.replies >= run.maxTurns;
  const toolCalls = runsTools && !lastCall ? conversation.withUniqueIds(end.toolCalls) : [];
  return {
    kind: 'assistant',
    message: {
      id: conversation.nextReplyId,
      turnId: conversation.turnId,
      at: new Date().toISOString(),
      role: 'assistant',
      text: end.text,
      ...(toolCalls.length > 0 && { toolCalls }),
      model: end.model,
    },
    finishReason: end.finishReason,
    usage: end.usage,
    startedAtMs,
    firstTextAtMs: conversation.firstHeardAtMs,
    durationMs: Date.now() - startedAtMs,
  };
}
