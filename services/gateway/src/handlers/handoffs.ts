import type { Actor } from '@concierge/contract';
import type { KeyRecord } from '@concierge/tenant';
import type { HandoffRequests } from '@concierge/turn';
import type { Handlers } from '../http/call.ts';
import { readRequestContext } from '../http/exchange.ts';

export interface HandoffHandlerOptions {
  readonly desk: HandoffRequests;
}

function actorOf(key: KeyRecord): Actor {
  return { kind: 'key', keyId: key.id };
}

/** Conversations that pass between the agent and staff. */
export function handoffHandlers({
  desk,
}: HandoffHandlerOptions): Pick<Handlers, 'listHandoffs' | 'getHandoff' | 'takeOver' | 'giveBack' | 'answerAsPerson'> {
  return {
    listHandoffs: async ({ caller, query }) => {
      const { items, total } = await desk.waiting(caller.scope, query.limit);
      return { kind: 'answer', status: 200, json: items, headers: { 'X-Total-Count': String(total) } };
    },
    getHandoff: async ({ caller, params }) => ({ kind: 'answer', status: 200, json: await desk.readState(caller.scope, params.id) }),
    takeOver: async ({ caller, params, body }) => {
      const { view, isNew } = await desk.take(caller.scope, params.id, { ...body, by: actorOf(caller.key) });
      return { kind: 'answer', status: isNew ? 201 : 200, json: view };
    },
    giveBack: async ({ caller, params }) => {
      await desk.giveBack(caller.scope, params.id, actorOf(caller.key));
      return { kind: 'answer', status: 200, json: await desk.readState(caller.scope, params.id) };
    },
    answerAsPerson: async ({ caller, params, headers, body, response }) => {
      const idempotencyKey = headers['idempotency-key'];
      const { turnId, sessionId, replayed } = await desk.answer(caller.scope, params.id, {
        text: body.message,
        by: actorOf(caller.key),
        dedupeId: idempotencyKey === undefined ? null : `person:${idempotencyKey}`,
        keyId: caller.key.id,
      });
      readRequestContext(response).turnId = turnId;
      if (replayed) response.setHeader('Idempotency-Replayed', 'true');
      return { kind: 'answer', status: 202, json: { turnId, contact_id: sessionId } };
    },
  };
}
