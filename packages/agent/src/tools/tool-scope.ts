import type { AcceptedTurn } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';
import { TurnSchedules, type SchedulesSource } from './automation/turn-schedules.ts';
import { fileView } from './files/file-view.ts';
import { TurnMessaging, type MessagingSource } from './messaging/turn-messaging.ts';
import { sessionsView } from './sessions/session-view.ts';
import { accessOf } from './tool-access.ts';
import type { TurnCapabilities, TurnContext, TurnStatus } from './tool-context.ts';

/** Whose notes a cs turn reads and keeps: the sender's; those of an anonymous contact last as long as its session's id is known. */
export function contactOf({ sender, sessionId }: Pick<AcceptedTurn, 'sender' | 'sessionId'>): string {
  return sender ?? `anonymous\u001f${sessionId}`;
}

export interface ToolScopeOptions {
  readonly scope: Pick<TenantScope, 'files' | 'memory' | 'skills' | 'sessions' | 'index'> &
    MessagingSource['scope'] &
    SchedulesSource['scope'];
  readonly turn: Pick<AcceptedTurn, 'agent' | 'authority' | 'sender' | 'sessionId' | 'turnId'> &
    MessagingSource['turn'] &
    SchedulesSource['turn'];
  readonly capabilities: TurnCapabilities;
  readonly status: () => TurnStatus;
}

/** What a turn's tools can reach: nothing in the result can do more than the turn's agent may. */
export function toolScope({ scope, turn, capabilities, status }: ToolScopeOptions): TurnContext {
  const access = accessOf(turn);
  return {
    access,
    agent: turn.agent,
    turnId: turn.turnId,
    sessionId: turn.sessionId,
    files: fileView(scope.files, access),
    memory: access === 'admin' ? scope.memory : scope.memory.forContact(contactOf(turn)),
    skills: scope.skills,
    sessions: sessionsView(scope, access, turn.sessionId),
    messaging: new TurnMessaging({ scope, turn, access }),
    schedules: new TurnSchedules({ scope, turn, access }),
    ...capabilities,
    status,
  };
}
