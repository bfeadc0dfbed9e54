import { AppError, routes } from '@concierge/contract';
import type { KeyRecord } from '@concierge/tenant';
import type { Turns, TurnViewer } from '@concierge/turn';
import { retryAsked } from '@concierge/core/failed-turns';
import { streamed, type Handlers, pageLink } from '../http/call.ts';
import { readRequestContext } from '../http/request-context.ts';
import type { FeedStreams } from '../sse/feed-streams.ts';
import type { Replies } from '../sse/replies.ts';
import { toTurnViewer } from '../chat/key-permissions.ts';

export interface TurnHandlerOptions {
  readonly turns: Turns;
  readonly replies: Replies;
  readonly feedStreams: FeedStreams;
}

/** A key with the scopes for reading and for cs may read every turn, but cancel only its own. */
function toTurnCanceller(key: KeyRecord): TurnViewer {
  return key.scopes.includes('admin') ? {} : { onlyKeyId: key.id };
}

const noTurn = (): AppError => new AppError('not_found', 'There is no such turn.');

export function turnHandlers({
  turns,
  replies,
  feedStreams,
}: TurnHandlerOptions): Pick<
  Handlers,
  'listTurns' | 'getTurn' | 'getTurnTrace' | 'followTurn' | 'followFeed' | 'cancelTurn' | 'retryTurn'
> {
  return {
    listTurns: async ({ caller, query }) => {
      const { cursor, error, ...asked } = query;
      const { items, nextCursor } = await turns.list(caller.scope, { ...asked, code: error, cursor });
      const json = await turns.withInputs(caller.scope, await turns.withWaits(caller.scope, items));
      return { kind: 'answer', status: 200, json, headers: pageLink(routes.listTurns.path, { ...asked, error }, nextCursor) };
    },
    getTurn: async ({ caller, params }) => {
      const turn = await turns.find(caller.scope, params.id, { ...toTurnViewer(caller.key), explains: true });
      if (turn === undefined) throw noTurn();
      const [json = turn] = await turns.withInputs(caller.scope, [turn]);
      return { kind: 'answer', status: 200, json };
    },
    getTurnTrace: async ({ caller, params }) => {
      const json = await turns.trace(caller.scope, params.id, toTurnViewer(caller.key));
      if (json === undefined) throw noTurn();
      return { kind: 'answer', status: 200, json };
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
      feedStreams.stream(response, { tenantId: caller.scope.tenantId, keyId: caller.key.id });
      return streamed;
    },
    cancelTurn: async ({ caller, params }) => {
      const turn = await turns.cancel(caller.scope, params.id, toTurnCanceller(caller.key));
      return { kind: 'answer', status: 202, json: turn };
    },
    retryTurn: async ({ caller: { scope }, params }) => {
      const { turn } = await retryAsked({ scope, turns }, params.id);
      return { kind: 'answer', status: 202, json: turn };
    },
  };
}
