import type { Session } from '@concierge/contract';
import { turnEnded, type OutgoingEvents } from '@concierge/turn';
import type { FollowUp } from './turn-runner.ts';

/** Tells the tenant's own systems how a turn has ended, where one of them wants to know. */
export function tellTurnEnd(outgoingEvents: Pick<OutgoingEvents, 'emit'>): FollowUp {
  return async ({ scope, turn }, session, record) => {
    // Nothing was asked, and nothing answered.
    if (turn.origin === 'retraction') return;
    const happening = turnEnded(turn, record, async () => Promise.resolve(replyOf(session, turn.turnId)));
    if (happening !== undefined) await outgoingEvents.emit(scope, happening);
  };
}

/** All that the agent said in the turn, as a client that does not stream gets it. */
function replyOf(session: Session, turnId: string): string {
  return session.messages.flatMap((message) => (message.role === 'assistant' && message.turnId === turnId ? [message.text] : [])).join('');
}
