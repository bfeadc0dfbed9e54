import { routes } from '@concierge/contract';
import { testMessage, type EventSender, type WebhookEvents, type SentEvent } from '@concierge/turn';
import { pageLink, type Handlers } from '../http/call.ts';
import { goneSignal } from '../http/request-context.ts';

type EventHandlers = Pick<
  Handlers,
  | 'listEventEndpoints'
  | 'createEventEndpoint'
  | 'getEventEndpoint'
  | 'updateEventEndpoint'
  | 'deleteEventEndpoint'
  | 'rotateEventSecret'
  | 'testEventEndpoint'
  | 'redriveEventEndpoint'
  | 'listEvents'
  | 'getEvent'
  | 'redriveEvent'
>;

export interface EventHandlerOptions {
  readonly webhookEvents: Pick<WebhookEvents, 'wakeSoon'>;
  readonly eventSender: Pick<EventSender, 'send'>;
}

/** Webhook events for a tenant's own systems. Events are files, sent by workers; only a test is sent from here. */
export function eventHandlers(options: EventHandlerOptions): EventHandlers {
  return { ...endpointHandlers(options), ...logHandlers(options) };
}

function endpointHandlers({
  webhookEvents,
  eventSender,
}: EventHandlerOptions): Omit<EventHandlers, 'listEvents' | 'getEvent' | 'redriveEvent'> {
  return {
    listEventEndpoints: async ({ caller: { scope } }) => ({ kind: 'answer', status: 200, json: await scope.events.endpoints.list() }),
    createEventEndpoint: async ({ caller: { scope }, body }) => {
      return { kind: 'answer', status: 201, json: await scope.events.endpoints.create(body) };
    },
    getEventEndpoint: async ({ caller: { scope }, params }) => {
      return { kind: 'answer', status: 200, json: await scope.events.endpoints.get(params.id) };
    },
    updateEventEndpoint: async ({ caller: { scope }, params, body }) => {
      return { kind: 'answer', status: 200, json: await scope.events.endpoints.update(params.id, body) };
    },
    deleteEventEndpoint: async ({ caller: { scope }, params }) => {
      await scope.events.endpoints.remove(params.id);
      return { kind: 'answer', status: 204 };
    },
    rotateEventSecret: async ({ caller: { scope }, params }) => {
      return { kind: 'answer', status: 201, json: await scope.events.endpoints.rotateSecret(params.id) };
    },
    testEventEndpoint: async ({ caller: { scope }, params, response }) => {
      const endpoint = await scope.events.endpoints.open(params.id);
      const sent = await eventSender.send(endpoint, testMessage(scope.tenantId), goneSignal(response));
      return { kind: 'answer', status: 200, json: testView(sent) };
    },
    redriveEventEndpoint: async ({ caller: { scope }, params, body }) => {
      const { events, more } = await scope.events.redriveAll(params.id, Date.parse(body.since ?? new Date(0).toISOString()));
      webhookEvents.wakeSoon(scope, events);
      return { kind: 'answer', status: 202, json: { redriven: events.length, more } };
    },
  };
}

function logHandlers({ webhookEvents }: EventHandlerOptions): Pick<EventHandlers, 'listEvents' | 'getEvent' | 'redriveEvent'> {
  return {
    listEvents: async ({ caller: { scope }, query }) => {
      const { items, nextCursor } = await scope.events.list(query);
      const { endpoint, status, type, limit } = query;
      return {
        kind: 'answer',
        status: 200,
        json: items,
        headers: pageLink(routes.listEvents.path, { endpoint, status, type, limit }, nextCursor),
      };
    },
    getEvent: async ({ caller: { scope }, params }) => ({ kind: 'answer', status: 200, json: await scope.events.get(params.id) }),
    redriveEvent: async ({ caller: { scope }, params }) => {
      webhookEvents.wakeSoon(scope, [await scope.events.redrive(params.id)]);
      return { kind: 'answer', status: 202, json: await scope.events.get(params.id) };
    },
  };
}

function testView({ status, ms, error }: SentEvent): { ok: boolean; status: number | null; ms: number; problem: string | null } {
  return { ok: error === null, status, ms, problem: error };
}
