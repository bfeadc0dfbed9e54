import type { AcceptedTurn } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';
import { fileView } from './file-view.ts';
import { sessionsView } from './session-view.ts';
import { accessOf } from './tool-access.ts';
import type { ToolContext, TurnStatus } from './tool-context.ts';

/** Whose notes a cs turn reads and keeps: the sender's; those of an anonymous contact last as long as its session's id is known. */
export function contactOf({ sender, sessionId }: Pick<AcceptedTurn, 'sender' | 'sessionId'>): string {
  return sender ?? `anonymous\u001f${sessionId}`;
}

/** A turn's capabilities out of its tenant's: nothing in the result can do more than the turn's agent may. */
export function toolScope(
  scope: Pick<TenantScope, 'files' | 'memory' | 'skills' | 'sessions' | 'index'>,
  turn: Pick<AcceptedTurn, 'agent' | 'authority' | 'sender' | 'sessionId'>,
  status: () => TurnStatus,
): Omit<ToolContext, 'signal'> {
  const access = accessOf(turn);
  return {
    access,
    sessionId: turn.sessionId,
    files: fileView(scope.files, access),
    memory: access === 'admin' ? scope.memory : scope.memory.forContact(contactOf(turn)),
    skills: scope.skills,
    sessions: sessionsView(scope, access, turn.sessionId),
    status,
  };
}
