import { AppError, toolCallEnd, toolCallStart, type FinishReason, type ToolMessage, type TurnStep } from '@concierge/contract';
import type { LoopRun, ToolOutcome } from './loop-run.ts';
import type { ModelEvent } from '@concierge/model';
import { modelMessages } from './model-messages.ts';
import { CallProgress } from '../tools/tool.ts';
import { journalCall, type OpenCall } from './conversation.ts';

/**
 * One turn, from the first model call to the answer: at most `maxTurns` calls with tools, then one without. What
 * happens is journaled step by step, and `run.conversation` holds it. A conversation that an earlier attempt began goes
 * on after its last finished step. Rejects with the signal's reason, with what the writer rejects with, and with the
 * model's error.
 */
export async function runAgentLoop(run: LoopRun): Promise<FinishReason> {
  const { conversation } = run;
  const { maxTurns } = run.agent;
  await callTools(run); // What an earlier attempt left open; usually nothing.
  for (let round = conversation.replies; !conversation.answered && round <= maxTurns; round += 1) {
    run.signal.throwIfAborted();
    await run.handOn();
    await run.compact('due');
    await replyInBounds(run, round < maxTurns);
    await callTools(run);
  }
  return conversation.finishReason(maxTurns);
}

/**
 * Ends a turn where it stands, because it was cancelled or failed: the text so far stays, open calls are closed with
 * `note` in the conversation, and in the stream where a reader has seen them start.
 */
export function closeOpenCalls(run: Pick<LoopRun, 'conversation' | 'writer' | 'startedCalls'>, note: string): void {
  const started = new Set(run.startedCalls);
  for (const open of run.conversation.openCalls()) if (open.intended) started.add(open.call.id);
  for (const message of run.conversation.closeOpenCalls(note)) {
    if (!started.has(message.callId)) continue;
    for (const event of toolCallEnd(message, 0)) run.writer.emit(event);
  }
}

/**
 * Gets a reply, after a compaction if necessary: a context that is too long is cut once, and a second refusal is the
 * turn's error.
 */
async function replyInBounds(run: LoopRun, withTools: boolean): Promise<void> {
  try {
    await streamReply(run, withTools);
  } catch (error) {
    if (!run.agent.model.isContextOverflow(error) || !(await run.compact('overflowed'))) throw error;
    if (run.conversation.voidPartial()) run.writer.emit({ type: 'text_reset', data: { reason: 'restarted' } });
    await streamReply(run, withTools);
  }
}

type ModelEnd = Extract<ModelEvent, { type: 'end' }>;
type AssistantStep = Extract<TurnStep, { kind: 'assistant' }>;

/**
 * One model call, streamed to the writer and journaled as a step. A reply that ends without an end is a provider's
 * error.
 */
async function streamReply(run: LoopRun, withTools: boolean): Promise<void> {
  const { conversation, agent, signal, writer } = run;
  const startedAtMs = Date.now();
  let end: ModelEnd | undefined;
  const images = await agent.loadImages(conversation.messages);
  for await (const event of agent.model.stream(
    {
      system: agent.system,
      messages: modelMessages(conversation, images, conversation.known),
      tools: withTools ? run.tools.offered : [],
      conversationId: conversation.sessionId,
      ...(agent.traceparent !== undefined && { traceparent: agent.traceparent }),
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
  const lastCall = conversation.replies >= run.agent.maxTurns;
  const toolCalls = runsTools && !lastCall ? conversation.withUniqueIds(end.toolCalls) : [];
  return {
    kind: 'assistant',
    message: {
      id: conversation.nextReplyId,
      turnId: conversation.turnId,
      at: new Date().toISOString(),
      role: 'assistant',
      text: end.text,
      ...(toolCalls.length > 0 && { toolCalls, ...(end.reasoning !== undefined && { reasoning: end.reasoning }) }),
      model: end.model,
    },
    finishReason: end.finishReason,
    usage: end.usage,
    startedAtMs,
    firstTextAtMs: conversation.firstHeardAtMs,
    durationMs: Date.now() - startedAtMs,
    ...(end.failedAttempts !== undefined && { failedAttempts: end.failedAttempts }),
  };
}

/** Read-only calls that run at the same time. */
const PARALLEL_MAX = 8;
/** More calls in one reply are a model that went astray; they are answered with an error. */
const CALLS_PER_REPLY_MAX = 64;

export const OUTCOME_UNKNOWN =
  'Outcome unknown: the service stopped while this tool ran, so it may or may not have taken effect. Check before trying again.';

/**
 * Runs every open call of the last reply. Neighbours without side effects run together; a call with side effects runs
 * alone, after everything before it and before everything after it, as the model wrote them down. Rejects only when the
 * turn must stop.
 */
async function callTools(run: LoopRun): Promise<void> {
  for (const batch of batchCalls(run, run.conversation.openCalls())) {
    run.signal.throwIfAborted();
    // All calls have settled before any failure is thrown: nothing of this turn runs after its end.
    const settled = await Promise.allSettled(batch.map((open) => runCall(run, open)));
    for (const outcome of settled) if (outcome.status === 'rejected') throw outcome.reason;
  }
}

function batchCalls(run: LoopRun, calls: readonly OpenCall[]): OpenCall[][] {
  const batches: OpenCall[][] = [];
  let open: OpenCall[] = [];
  for (const call of calls) {
    const runsAlone = run.tools.hasSideEffect(call.call.name);
    if (runsAlone || open.length === PARALLEL_MAX) open = [];
    if (open.length === 0) batches.push(open);
    open.push(call);
    if (runsAlone) open = [];
  }
  return batches;
}

async function runCall(run: LoopRun, open: OpenCall): Promise<void> {
  const { id, name } = open.call;
  const startedAtMs = Date.now();
  await journalCall(run, { kind: 'intent', callId: id, name }, run.startedCalls.has(id) ? [] : [toolCallStart(open.call)]);
  const outcome = await findOutcome(run, open);
  const durationMs = Date.now() - startedAtMs;
  const message: ToolMessage = {
    id: run.conversation.resultId(open.index),
    turnId: run.conversation.turnId,
    at: new Date().toISOString(),
    role: 'tool',
    callId: id,
    name,
    output: outcome.output,
    isError: outcome.isError,
    ...(outcome.attachments !== undefined && { attachments: [...outcome.attachments] }),
  };
  const step = { kind: 'result', message, startedAtMs, durationMs, ...(outcome.usage && { usage: outcome.usage }) } as const;
  await journalCall(run, step, toolCallEnd(message, durationMs));
}

async function findOutcome(run: LoopRun, open: OpenCall): Promise<ToolOutcome> {
  // An attempt that died had intended the call: a call without side effects runs again, any other may have happened
  // already.
  if (open.intended && run.tools.hasSideEffect(open.call.name)) return { output: unknownOutcome(open), isError: true };
  if (open.index >= CALLS_PER_REPLY_MAX) {
    return { output: `Not run: at most ${String(CALLS_PER_REPLY_MAX)} tool calls fit into one reply.`, isError: true };
  }
  using progress = new CallProgress(open.call, (event) => run.writer.emit(event));
  return await run.tools.call(open.call, run.signal, (delta) => progress.hear(delta));
}

/** Calls that its command made are journaled separately, so it is known how far they came. */
function unknownOutcome({ nested }: OpenCall): string {
  if (nested.length === 0) return OUTCOME_UNKNOWN;
  const states = { begun: 'outcome unknown', done: 'done', failed: 'failed' } as const;
  const lines = nested.map(({ name, state }) => `- concierge ${name}: ${states[state]}`);
  return `${OUTCOME_UNKNOWN}\nIt had called these tools by then:\n${lines.join('\n')}`;
}
