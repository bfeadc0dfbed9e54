import { randomBytes } from 'node:crypto';
import { AppError, builtInAgent, type HistoryLine, type Session, type SessionForkBody, type SessionMessage } from '@concierge/contract';
import type { TenantScope } from '../tenant-scope.ts';

/**
 * Begins another conversation with the messages up to a turn. Turn records stay where they are: what the turns used is
 * counted once.
 * @throws AppError not_found, conflict
 */
export async function forkSession(scope: TenantScope, sessionId: string, { turnId, includesTurn }: SessionForkBody): Promise<Session> {
  const found = await scope.sessions.conversation(sessionId);
  if (found === undefined) throw new AppError('not_found', 'There is no such session.');
  const { session, messages } = found;
  await assertOwners(scope, session.agent);
  const end = findEnd(messages, { turnId, includesTurn });
  if (end === 0) throw new AppError('conflict', 'Nothing comes before this turn: begin a new conversation.');
  const now = new Date().toISOString();
  const kept = messages.slice(0, end);
  const { history, ...current } = divide(session, kept);
  const { channelAddress: _address, ...facts } = session;
  const fork: Session = {
    ...facts,
    ...current,
    id: randomBytes(16).toString('hex'),
    sender: null,
    channel: 'web',
    origin: 'user',
    forkedFrom: { id: sessionId, turnId: kept.at(-1)?.turnId ?? turnId },
    revision: 1,
    createdAt: now,
    updatedAt: now,
    messageCount: kept.length,
    turns: [],
    contextTokens: null,
  };
  // Never a session whose summary stands for messages that are nowhere.
  if (history.length > 0) await scope.sessions.appendHistory(fork.id, history);
  await scope.sessions.publish(fork);
  await scope.index.putSession(fork, { turnIds: [] });
  scope.tellSession?.(fork.id);
  return fork;
}

/** A contact's words stay in the contact's conversations. */
async function assertOwners(scope: TenantScope, agent: string): Promise<void> {
  const own = await scope.agents.find(agent);
  const definition = builtInAgent(agent) ?? (own !== undefined && 'agent' in own ? own.agent : undefined);
  if (definition?.access !== 'admin')
    throw new AppError('conflict', 'Only conversations with agents for the owner are gone on with in another one.');
}

/** Where the messages end that are taken over. */
function findEnd(messages: readonly SessionMessage[], { turnId, includesTurn }: SessionForkBody): number {
  const first = messages.findIndex((message) => message.turnId === turnId);
  if (first === -1) throw new AppError('not_found', 'The conversation has no ended turn of this id.');
  return includesTurn ? messages.findLastIndex((message) => message.turnId === turnId) + 1 : first;
}

interface Divided extends Pick<Session, 'summary' | 'messages'> {
  readonly history: readonly HistoryLine[];
}

/** As the first conversation has them: behind its summary, where the summary stands for nothing that is left out. */
function divide({ summary, messages: current }: Session, kept: readonly SessionMessage[]): Divided {
  const ids = new Set(kept.map(({ id }) => id));
  const own = current.filter(({ id }) => ids.has(id));
  if (summary === null || own.length === 0) return { summary: null, messages: [...kept], history: [] };
  const ownIds = new Set(own.map(({ id }) => id));
  const history = kept.filter(({ id }) => !ownIds.has(id)).map((message): HistoryLine => ({ kind: 'message', message }));
  return { summary, messages: own, history };
}
