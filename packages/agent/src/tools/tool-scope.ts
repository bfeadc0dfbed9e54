import { AppError, isSharedPath, type AcceptedTurn, type SessionView, type UsageRow, type UploadRef } from '@concierge/contract';
import { toNotesOwner, type TenantScope, type SessionStore, type TenantIndex, type Uploads, type TenantFiles } from '@concierge/tenant';
import { TurnSchedules, type SchedulesSource } from './automation/turn-schedules.ts';
import { TurnMessaging, type MessagingSource } from './messaging/turn-messaging.ts';
import type { ToolAccess } from './tool-access.ts';
import type {
  CallContext,
  FileAccess,
  ReadUpload,
  ToolContext,
  TurnCapabilities,
  TurnDocuments,
  TurnMemory,
  TurnSessions,
  TurnStatus,
} from './tool-context.ts';

export { toNotesOwner } from '@concierge/tenant';

export interface ToolScopeOptions {
  readonly scope: Pick<
    TenantScope,
    'files' | 'fileHistory' | 'memory' | 'memorySearch' | 'skills' | 'skillEditor' | 'sessions' | 'index' | 'uploads'
  > &
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

/**
 * What a call can reach: nothing in the result can do more than the turn's agent may. What the tool of
 * `call` does not ask for is not made.
 */
export function toolScope(
  { scope, turn, access, allow, capabilities, status, showsImages = true }: ToolScopeOptions,
  call: CallContext,
): ToolContext {
  return {
    ...call,
    access,
    agent: turn.agent,
    turnId: turn.turnId,
    sessionId: turn.sessionId,
    status,
    get files() {
      if (access !== 'admin') return csAccess(scope.files);
      return scope.fileHistory.writer({ kind: 'agent', agent: turn.agent, turnId: turn.turnId });
    },
    get memory() {
      return turnMemory(scope, access, turn);
    },
    get skills() {
      return scope.skills;
    },
    get skillEditor() {
      return access === 'admin' ? scope.skillEditor : undefined;
    },
    get sessions() {
      return turnSessions(scope, access, turn.sessionId);
    },
    get messaging() {
      const { requestStaff, findReplyWindow } = capabilities;
      return new TurnMessaging({ scope, turn, access, requestStaff, findReplyWindow });
    },
    get schedules() {
      return new TurnSchedules({ scope, turn, access, allow });
    },
    get documents() {
      const history = async (): Promise<SessionView | undefined> => scope.sessions.view(turn.sessionId);
      const { uploads } = scope;
      return turnDocuments({
        uploads,
        readUpload: capabilities.readUpload,
        access,
        attached: turn.attachments ?? [],
        history,
        showsImages,
      });
    },
    get usageToday() {
      return access === 'admin' ? async () => usageToday(scope.index) : undefined;
    },
    get runtime() {
      return capabilities.runtime;
    },
    get fetchPage() {
      return capabilities.fetchPage;
    },
    get searchWeb() {
      return capabilities.searchWeb;
    },
    get listAgents() {
      return capabilities.listAgents;
    },
    get runSubagents() {
      return capabilities.runSubagents;
    },
  };
}

/**
 * Earlier notes and messages, as far as this turn may read them: the owner's notes and every conversation for the
 * admin; for cs this contact's notes and its own conversations with this agent.
 */
function turnMemory(
  scope: Pick<TenantScope, 'memory' | 'memorySearch'>,
  access: ToolAccess,
  turn: Pick<AcceptedTurn, 'agent' | 'sender' | 'sessionId'>,
): TurnMemory {
  const { agent, sender, sessionId } = turn;
  const files = access === 'admin' ? scope.memory : scope.memory.forContact(toNotesOwner(turn));
  const searcher = access === 'admin' ? ({ access: 'owner' } as const) : ({ access: 'contact', agent, sender, sessionId } as const);
  return {
    write: async (note) => files.write(note),
    get: async (ref) => files.get(ref),
    list: async () => files.list(),
    forget: async (ref) => {
      await files.forget(ref);
      await scope.memorySearch.forgetNote(searcher, ref);
    },
    search: async (question) => scope.memorySearch.search(searcher, question),
  };
}

interface SessionsSource {
  readonly sessions: Pick<SessionStore, 'view'>;
  readonly index: Pick<TenantIndex, 'listSessions'>;
}

/** Conversations as an agent of this access may see them: cs none but its own. */
function turnSessions(source: SessionsSource, access: ToolAccess, ownId: string): TurnSessions {
  return {
    list: async (query) => (access === 'admin' ? (await source.index.listSessions(query)).items : []),
    history: async (id) => (access === 'admin' || id === ownId ? source.sessions.view(id) : undefined),
  };
}

/** Reads what the turns of a tenant have used that ended today, by UTC. */
async function usageToday(index: Pick<TenantIndex, 'usage'>): Promise<readonly UsageRow[]> {
  const day = new Date().toISOString().slice(0, 'YYYY-MM-DD'.length);
  return index.usage({ from: day, to: day });
}

interface DocumentsOptions {
  readonly uploads: Pick<Uploads, 'find'>;
  readonly readUpload: ReadUpload;
  readonly access: ToolAccess;
  /** This turn's own; its message is not in the session yet. */
  readonly attached: readonly UploadRef[];
  /** This conversation up to the last turn. */
  readonly history: () => Promise<SessionView | undefined>;
  readonly showsImages: boolean;
}

/**
 * Uploads as the agent of a turn may see them: cs what was attached in its own conversation, admin every upload of the
 * tenant whose id it has.
 */
function turnDocuments({ uploads, readUpload, access, attached, history, showsImages }: DocumentsOptions): TurnDocuments {
  const list = async (): Promise<readonly UploadRef[]> => {
    const earlier = (await history())?.messages ?? [];
    const all = [...earlier.flatMap((message) => (message.role === 'user' ? (message.attachments ?? []) : [])), ...attached];
    return [...new Map(all.map((upload) => [upload.id, upload])).values()];
  };
  return {
    list,
    find: async (id) => {
      if (access === 'cs' && !(await list()).some((upload) => upload.id === id)) return undefined;
      return uploads.find(id);
    },
    text: readUpload,
    showsImages,
  };
}

/** The tenant's files as the cs agent may use them: it reads two folders and writes nothing. */
function csAccess(files: TenantFiles): FileAccess {
  return {
    readText: async (path) => files.readText(seen(path)),
    readBytes: async (path) => files.readBytes(seen(path)),
    list: async (path, options) => files.list(seen(path), options),
    stat: async (path) => files.stat(seen(path)),
    writeText: () => Promise.reject(hidden()),
    updateText: () => Promise.reject(hidden()),
  };
}

/** The path again, when cs may see it. The walk itself refuses every way out of its folder. */
function seen(path: string): string {
  if (!isSharedPath(path)) throw hidden();
  return path;
}

function hidden(): AppError {
  return new AppError('not_found', 'There is no such file. You can see what is under skills/ and templates/.');
}
