import { toolCallEnd, type FinishReason } from '@concierge/contract';
import { callTools } from './call-tools.ts';
import type { LoopRun } from './loop-run.ts';
import { streamReply } from './stream-reply.ts';

/**
 * One turn, from the first model call to the answer: at most `maxTurns` calls with tools, then one without. What
 * happens is journaled step by step, and `run.conversation` holds it. A conversation that an earlier attempt began goes
 * on after its last finished step. Rejects with the signal's reason, with what the writer rejects with, and with the
 * model's error.
 */
export async function runAgentLoop(run: LoopRun): Promise<FinishReason> {
  const { conversation } = run;
  await callTools(run); // What an earlier attempt left open; usually nothing.
  for (let round = conversation.replies; !conversation.answered && round <= run.maxTurns; round += 1) {
    run.signal.throwIfAborted();
    await run.compact('due');
    await replyInBounds(run, round < run.maxTurns);
    await callTools(run);
  }
  return conversation.finishReason(run.maxTurns);
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
    if (!run.model.isContextOverflow(error) || !(await run.compact('overflowed'))) throw error;
    if (run.conversation.voidPartial()) run.writer.emit({ type: 'text_reset', data: { reason: 'restarted' } });
    await streamReply(run, withTools);
  }
}
