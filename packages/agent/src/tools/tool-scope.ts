import type { AcceptedTurn } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';
import { TurnSchedules, type SchedulesSource } from './automation/turn-schedules.ts';
import { turnDocuments } from './documents/turn-documents.ts';
import { fileAccess } from './files/file-access.ts';
import { turnMemory } from './memory/turn-memory.ts';
import { TurnMessaging, type MessagingSource } from './messaging/turn-messaging.ts';
import { turnSessions, usageToday } from './sessions/turn-sessions.ts';
import type { ToolAccess } from './tool-access.ts';
import type { TurnCapabilities, TurnContext, TurnStatus } from './tool-context.ts';

export { toNotesOwner } from '@concierge/tenant';

export interface ToolScopeOptions {
  readonly scope: Pick<TenantScope, 'files' | 'memory' | 'memorySearch' | 'skills' | 'skillEditor' | 'sessions' | 'index' | 'uploads'> &
    MessagingSource['scope'] &
    SchedulesSource['scope'];
  readonly turn: Pick<AcceptedTurn, 'agent' | 'sender' | 'sessionId' | 'turnId'> &
    Partial<Pick<AcceptedTurn, 'attachments'>> &
    MessagingSource['turn'] &
    SchedulesSource['turn'];
  readonly access: ToolAccess;
  /** Names of the tools the turn may have at most; left out: all that its access gives. */
  readonly allow?: readonly string[] | undefined;
  readonly capabilities: TurnCapabilities;
  readonly status: () => TurnStatus;
  /** Whether the turn's model takes images. Default true. */
  readonly showsImages?: boolean;
}

/** What a turn's tools can reach: nothing in the result can do more than the turn's agent may. */
export function toolScope({ scope, turn, access, allow, capabilities, status, showsImages = true }: ToolScopeOptions): TurnContext {
  const { requestStaff, findReplyWindow, readUpload } = capabilities;
  return {
    access,
    agent: turn.agent,
    turnId: turn.turnId,
    sessionId: turn.sessionId,
    files: fileAccess(scope.files, access),
    memory: turnMemory(scope, access, turn),
    skills: scope.skills,
    skillEditor: access === 'admin' ? scope.skillEditor : undefined,
    sessions: turnSessions(scope, access, turn.sessionId),
    messaging: new TurnMessaging({ scope, turn, access, requestStaff, findReplyWindow }),
    schedules: new TurnSchedules({ scope, turn, access, allow }),
    documents: turnDocuments({
      uploads: scope.uploads,
      readUpload,
      access,
      attached: turn.attachments ?? [],
      history: async () => scope.sessions.view(turn.sessionId),
      showsImages,
    }),
    usageToday: access === 'admin' ? usageToday(scope.index) : undefined,
    ...capabilities,
    status,
  };
}
