import type { TurnEvent, TurnStep } from '@concierge/contract';
import type { LoopRun } from './loop-run.ts';

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
