import type { TurnRun } from '@concierge/turn';

/** A person has the conversation, so the turn is not for the agent. One that asked for the person itself may say its last words. */
export async function isHandedOver({ scope, turn }: TurnRun): Promise<boolean> {
  if (!(await scope.handoffs.isPaused(turn.sessionId))) return false;
  const asker = (await scope.handoffs.find(turn.sessionId))?.requestedBy;
  return !(asker?.kind === 'agent' && asker.turnId === turn.turnId);
}
