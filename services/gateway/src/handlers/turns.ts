import { AppError, routes, builtInAgent } from '@concierge/contract';
import type { KeyRecord, TenantScope } from '@concierge/tenant';
import type { Turns, TurnViewer } from '@concierge/turn';
import { streamed, type Handlers, pageLink } from '../http/call.ts';
import { readRequestContext } from '../http/request-context.ts';
import type { Replies } from '../sse/replies.ts';
import { toTurnViewer } from '../chat/key-permissions.ts';

export interface TurnHandlerOptions {
  readonly turns: Pick<Turns, 'find' | 'list' | 'cancel'>;
  readonly replies: Replies;
}

/** A key with the scopes for reading and for cs may read every turn, but cancel only its own. */
function toTurnCanceller(key: KeyRecord): TurnViewer {
  return key.scopes.includes('admin') ? {} : { onlyKeyId: key.id };
}

const noTurn = (): AppError => new AppError('not_found', 'There is no such turn.');

export function turnHandlers({
  turns,
  replies,
}: TurnHandlerOptions): Pick<Handlers, 'listTurns' | 'getTurn' | 'followTurn' | 'followFeed' | 'cancelTurn'> {
  return {
    listTurns: async ({ caller, query }) => {
      const { items, nextCursor } = await turns.list(caller.scope, query);
      const { limit, status, contact_id: contactId } = query;
      return {
        kind: 'answer',
        status: 200,
        json: items,
        headers: pageLink(routes.listTurns.path, { limit, status, contact_id: contactId }, nextCursor),
      };
    },
    getTurn: async ({ caller, params }) => {
      const turn = await turns.find(caller.scope, params.id, { ...toTurnViewer(caller.key), explains: true });
      if (turn === undefined) throw noTurn();
      return { kind: 'answer', status: 200, json: turn };
    },
    followTurn: async ({ caller, params, query, headers, response }) => {
      const { scope, key } = caller;
      if ((await turns.find(scope, params.id, toTurnViewer(key))) === undefined) throw noTurn();
      replies.refuseWhenFull(key.id);
      readRequestContext(response).turnId = params.id;
      // An EventSource that resumes sends the header; an empty one means that it has seen no event yet.
      const given = headers['last-event-id'] ?? query.lastEventId ?? '';
      const watch = { scope, turnId: params.id, keyId: key.id, after: given === '' ? null : given };
      if (await replies.isOver(watch)) return { kind: 'answer', status: 204 };
      replies.stream(response, watch);
      return streamed;
    },
    followFeed: ({ caller, response }) => {
      replies.streamFeed(response, { scope: caller.scope, keyId: caller.key.id });
      return streamed;
    },
    cancelTurn: async ({ caller, params }) => {
      const turn = await turns.cancel(caller.scope, params.id, toTurnCanceller(caller.key));
      return { kind: 'answer', status: 202, json: turn };
    },
  };
}

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
