import type { Conversation } from '@concierge/agent';
import type { AssistantMessage, TurnStep } from '@concierge/contract';
import type { TurnRun } from '@concierge/turn';

/**
 * Words in the agent's place that no model wrote, streamed and journaled like a reply. A recovering attempt that finds them in the journal does not say
 * them again.
 */
export async function speak({ turn, writer }: TurnRun, conversation: Conversation, text: string): Promise<void> {
  if (conversation.replies > 0) return;
  const message: AssistantMessage = {
    id: conversation.nextReplyId,
    turnId: turn.turnId,
    at: new Date().toISOString(),
    role: 'assistant',
    text,
    ...(turn.by !== undefined && { by: turn.by }),
  };
  const step: TurnStep = { kind: 'said', message };
  writer.emit({ type: 'text_delta', data: { delta: text } });
  conversation.apply(step);
  await writer.step(step);
}
