import { AppError, builtInAgent, routes } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';
import type { Handlers } from '../http/call.ts';
import { pageLink } from './page-link.ts';

const noSession = (): AppError => new AppError('not_found', 'There is no such session.');

export function sessionHandlers(): Pick<Handlers, 'listSessions' | 'getSession' | 'deleteSession'> {
  return {
    listSessions: async ({ caller, query }) => {
      const { items, nextCursor } = await caller.scope.index.listSessions(query);
      const { limit, agent } = query;
      if (agent !== undefined && items.length === 0) await assertKnown(caller.scope, agent);
      const headers = pageLink(routes.listSessions.path, { limit, agent, origin: query.origin?.join(',') }, nextCursor);
      return { kind: 'answer', status: 200, json: items, headers };
    },
    getSession: async ({ caller, params }) => {
      const session = await caller.scope.sessions.view(params.id);
      if (session === undefined) throw noSession();
      return { kind: 'answer', status: 200, json: session };
    },
    deleteSession: async ({ caller, params }) => {
      await removeSession(caller.scope, params.id);
      return { kind: 'answer', status: 204 };
    },
  };
}

/** One of the names there are; an agent that is gone is known by its sessions. @throws AppError invalid_request */
async function assertKnown(scope: TenantScope, agent: string): Promise<void> {
  if (builtInAgent(agent) !== undefined || (await scope.agents.find(agent)) !== undefined) return;
  throw new AppError('invalid_request', undefined, { errors: [{ path: 'agent', message: 'is no agent of this tenant' }] });
}

async function removeSession(scope: TenantScope, sessionId: string): Promise<void> {
  if (await hasLiveTurn(scope, sessionId))
    throw new AppError('session_busy', 'A turn of this session waits or runs; cancel it first.', { retryAfterSeconds: 1 });
  if (!(await scope.removeSession(sessionId))) throw noSession();
}

/** Accepted messages will be answered, in a session that must still exist. */
async function hasLiveTurn(scope: TenantScope, sessionId: string): Promise<boolean> {
  for (const turnId of await scope.inbox.turnIds()) {
    const turn = await scope.inbox.read(turnId);
    if (turn?.sessionId === sessionId) return true;
  }
  return false;
}
