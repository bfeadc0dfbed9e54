import { toolCallEnd } from '@concierge/contract';
import type { LoopRun } from './loop-run.ts';

/**
 * Ends a turn where it stands, because it was cancelled or failed: what was said stays, open calls are closed with `note` in the
 * conversation, and in the stream where a reader has seen them start.
 */
export function breakOff(run: Pick<LoopRun, 'conversation' | 'writer' | 'startedCalls'>, note: string): void {
  const started = new Set(run.startedCalls);
  for (const open of run.conversation.openCalls()) if (open.intended) started.add(open.call.id);
  for (const message of run.conversation.breakOff(note)) {
    if (!started.has(message.callId)) continue;
    for (const event of toolCallEnd(message, 0)) run.writer.emit(event);
  }
}
