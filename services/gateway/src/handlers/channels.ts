import type { ChannelConnections } from '@concierge/channel';
import { AppError, routes, type Actor } from '@concierge/contract';
import { listDeliveries, type KeyRecord } from '@concierge/tenant';
import type { HandoffRequests } from '@concierge/turn';
import { pageLink, type Handlers } from '../http/call.ts';
import { readRequestContext } from '../http/request-context.ts';

type ChannelHandlers = Pick<Handlers, 'listChannels' | 'getChannel' | 'getChannelSetup' | 'putChannel' | 'deleteChannel' | 'testChannel'>;

/** Channel bindings, by the same rules as the command line. */
export function channelHandlers({ connections }: { readonly connections: ChannelConnections }): ChannelHandlers {
  return {
    listChannels: async ({ caller: { scope } }) => ({ kind: 'answer', status: 200, json: await connections.list(scope) }),
    getChannel: async ({ caller: { scope }, params }) => ({
      kind: 'answer',
      status: 200,
      json: await connections.find(scope, params.channel),
    }),
    getChannelSetup: async ({ caller: { scope }, params }) => ({
      kind: 'answer',
      status: 200,
      json: await connections.describeSetup(scope, params.channel),
    }),
    putChannel: async ({ caller: { scope }, params, body }) => {
      const { shown, isNew } = await connections.connect(scope, params.channel, body);
      return { kind: 'answer', status: isNew ? 201 : 200, json: shown };
    },
    deleteChannel: async ({ caller: { scope }, params }) => {
      await connections.disconnect(scope, params.channel);
      return { kind: 'answer', status: 204 };
    },
    testChannel: async ({ caller: { scope }, params }) => ({
      kind: 'answer',
      status: 200,
      json: await connections.test(scope, params.channel),
    }),
  };
}

type DeliveryHandlers = Pick<Handlers, 'listDeliveries' | 'getDelivery' | 'redriveDelivery'>;

/** Outgoing messages on channels: workers send them, these handlers show them. */
export function deliveryHandlers(): DeliveryHandlers {
  return {
    listDeliveries: async ({ caller: { scope }, query }) => {
      const { items, nextCursor } = await listDeliveries(scope.outbox, query);
      const { limit, status } = query;
      const headers = pageLink(routes.listDeliveries.path, { limit, status }, nextCursor);
      return { kind: 'answer', status: 200, json: items.map((delivery) => delivery.view()), headers };
    },
    getDelivery: async ({ caller: { scope }, params }) => {
      const delivery = await scope.outbox.delivery(params.id);
      if (delivery === undefined) throw new AppError('not_found', 'There is no such message.');
      return { kind: 'answer', status: 200, json: delivery.fullView() };
    },
    redriveDelivery: async ({ caller: { scope, key }, params }) => {
      const delivery = await scope.outbox.redrive(params.id, { kind: 'key', keyId: key.id });
      return { kind: 'answer', status: 202, json: delivery.fullView() };
    },
  };
}

interface HandoffHandlerOptions {
  readonly desk: HandoffRequests;
}

function toActor(key: KeyRecord): Actor {
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
      const { view, isNew } = await desk.take(caller.scope, params.id, { ...body, by: toActor(caller.key) });
      return { kind: 'answer', status: isNew ? 201 : 200, json: view };
    },
    giveBack: async ({ caller, params }) => {
      await desk.giveBack(caller.scope, params.id, toActor(caller.key));
      return { kind: 'answer', status: 200, json: await desk.readState(caller.scope, params.id) };
    },
    answerAsPerson: async ({ caller, params, headers, body, response }) => {
      const idempotencyKey = headers['idempotency-key'];
      const { turnId, sessionId, replayed } = await desk.answer(caller.scope, params.id, {
        text: body.message,
        by: toActor(caller.key),
        dedupeId: idempotencyKey === undefined ? null : `person:${idempotencyKey}`,
        keyId: caller.key.id,
      });
      readRequestContext(response).turnId = turnId;
      if (replayed) response.setHeader('Idempotency-Replayed', 'true');
      return { kind: 'answer', status: 202, json: { turnId, contact_id: sessionId } };
    },
  };
}
