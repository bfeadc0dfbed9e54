import { AppError, routes } from '@concierge/contract';
import type { KeyRecord } from '@concierge/tenant';
import type { Turns, TurnViewer } from '@concierge/turn';
import { streamed, type Handlers } from '../http/call.ts';
import { readRequestContext } from '../http/exchange.ts';
import type { EventStreams } from '../sse/event-streams.ts';
import { viewerOf } from '../chat/turn-viewer.ts';
import { pageLink } from './page-link.ts';

export interface TurnHandlerOptions {
  readonly turns: Pick<Turns, 'find' | 'list' | 'cancel'>;
  readonly eventStreams: EventStreams;
}

/** A key with the scopes for reading and for cs may read every turn, but cancel only its own. */
function cancellerOf(key: KeyRecord): TurnViewer {
  return key.scopes.includes('admin') ? {} : { onlyKeyId: key.id };
}

const noTurn = (): AppError => new AppError('not_found', 'There is no such turn.');

export function turnHandlers({
  turns,
  eventStreams,
}: TurnHandlerOptions): Pick<Handlers, 'listTurns' | 'getTurn' | 'followTurn' | 'cancelTurn'> {
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
      const turn = await turns.find(caller.scope, params.id, viewerOf(caller.key));
      if (turn === undefined) throw noTurn();
      return { kind: 'answer', status: 200, json: turn };
    },
    followTurn: async ({ caller, params, query, headers, response }) => {
      const { scope, key } = caller;
      if ((await turns.find(scope, params.id, viewerOf(key))) === undefined) throw noTurn();
      eventStreams.refuseWhenFull(key.id);
      readRequestContext(response).turnId = params.id;
      // An EventSource that resumes sends the header; an empty one means that it has seen no event yet.
      const given = headers['last-event-id'] ?? query.lastEventId ?? '';
      const watch = { scope, turnId: params.id, keyId: key.id, after: given === '' ? null : given };
      if (await eventStreams.isOver(watch)) return { kind: 'answer', status: 204 };
      eventStreams.serve(response, watch);
      return streamed;
    },
    cancelTurn: async ({ caller, params }) => {
      const turn = await turns.cancel(caller.scope, params.id, cancellerOf(caller.key));
      return { kind: 'answer', status: 202, json: turn };
    },
  };
}
