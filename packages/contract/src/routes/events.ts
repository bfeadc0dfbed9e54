import { z } from 'zod';
import {
  EventEndpointId,
  EventEndpointPatch,
  EventEndpointTest,
  EventEndpointView,
  EventEndpointWithSecret,
  NewEventEndpoint,
} from '../tenants/event-endpoint.ts';
import { EventId, EventStatus, EventType, EventView } from '../tenants/event.ts';
import { limits } from '../limits.ts';
import { cursorParameter, limitParameter, pageHeaders, defineRoute } from './route.ts';

const endpointParams = z.object({ id: EventEndpointId });
const eventParams = z.object({ id: EventId });

export const listEventEndpoints = defineRoute({
  id: 'listEventEndpoints',
  method: 'get',
  path: '/api/event-endpoints',
  tag: 'events',
  summary: 'Where events are sent to',
  auth: 'key',
  scopes: ['admin', 'read'],
  answers: { 200: { description: 'Endpoints, the oldest first, without their secrets.', json: z.array(EventEndpointView) } },
  errors: [],
});

export const createEventEndpoint = defineRoute({
  id: 'createEventEndpoint',
  audit: 'event-endpoint.create',
  method: 'post',
  path: '/api/event-endpoints',
  tag: 'events',
  summary: 'Have events sent to a URL',
  description: 'Signed by Standard Webhooks, tried again for days. From now on: nothing that has happened before is sent.',
  auth: 'key',
  scopes: ['admin'],
  body: { kind: 'json', schema: NewEventEndpoint },
  answers: { 201: { description: 'The endpoint; its secret is shown this once.', json: EventEndpointWithSecret } },
  errors: ['conflict'],
});

export const getEventEndpoint = defineRoute({
  id: 'getEventEndpoint',
  method: 'get',
  path: '/api/event-endpoints/{id}',
  tag: 'events',
  summary: 'One endpoint and its state',
  auth: 'key',
  scopes: ['admin', 'read'],
  params: endpointParams,
  answers: { 200: { description: 'The endpoint.', json: EventEndpointView } },
  errors: ['not_found'],
});

export const updateEventEndpoint = defineRoute({
  id: 'updateEventEndpoint',
  audit: 'event-endpoint.update',
  method: 'patch',
  path: '/api/event-endpoints/{id}',
  tag: 'events',
  summary: 'Change an endpoint, disable it or enable it again',
  description:
    'Each field replaces the one that was there. What waits for an endpoint that is disabled becomes a dead letter, to be sent anew later.',
  auth: 'key',
  scopes: ['admin'],
  params: endpointParams,
  body: { kind: 'json', schema: EventEndpointPatch },
  answers: { 200: { description: 'The endpoint as it is now.', json: EventEndpointView } },
  errors: ['not_found', 'conflict'],
});

export const deleteEventEndpoint = defineRoute({
  id: 'deleteEventEndpoint',
  audit: 'event-endpoint.delete',
  method: 'delete',
  path: '/api/event-endpoints/{id}',
  tag: 'events',
  summary: 'Remove an endpoint',
  description: 'What waits for it is not sent any more; its events stay in the log.',
  auth: 'key',
  scopes: ['admin'],
  params: endpointParams,
  answers: { 204: { description: 'It is gone, with its secret.' } },
  errors: ['not_found'],
});

export const rotateEventSecret = defineRoute({
  id: 'rotateEventSecret',
  audit: 'event-endpoint.rotate',
  method: 'post',
  path: '/api/event-endpoints/{id}/rotate-secret',
  tag: 'events',
  summary: 'Give an endpoint a new secret',
  description: `For ${String(limits.eventSecretOverlapHours)} hours the old one signs along: every request then carries both signatures.`,
  auth: 'key',
  scopes: ['admin'],
  params: endpointParams,
  answers: { 201: { description: 'The endpoint; its new secret is shown this once.', json: EventEndpointWithSecret } },
  errors: ['not_found', 'conflict'],
});

export const testEventEndpoint = defineRoute({
  id: 'testEventEndpoint',
  method: 'post',
  path: '/api/event-endpoints/{id}/test',
  tag: 'events',
  summary: 'Send `endpoint.test` to an endpoint now',
  auth: 'key',
  scopes: ['admin'],
  params: endpointParams,
  answers: { 200: { description: 'What came of it. It is tried once and is not in the log.', json: EventEndpointTest } },
  errors: ['not_found', 'conflict'],
});

export const redriveEventEndpoint = defineRoute({
  id: 'redriveEventEndpoint',
  method: 'post',
  path: '/api/event-endpoints/{id}/redrive',
  tag: 'events',
  summary: 'Have the dead letters of an endpoint sent anew',
  description: 'The oldest first. `more`: there are others; ask again.',
  auth: 'key',
  scopes: ['admin'],
  params: endpointParams,
  body: {
    kind: 'json',
    schema: z
      .strictObject({ since: z.iso.datetime({ offset: true }).max(limits.timeMaxCharacters).optional() })
      .meta({ id: 'EventRedrive' }),
  },
  answers: {
    202: {
      description: 'So many wait to be sent.',
      json: z.object({ redriven: z.int().nonnegative(), more: z.boolean() }).meta({ id: 'EventsRedriven' }),
    },
  },
  errors: ['not_found', 'conflict'],
});

export const listEvents = defineRoute({
  id: 'listEvents',
  method: 'get',
  path: '/api/events',
  tag: 'events',
  summary: 'Log of what was sent and is to be sent, the newest first',
  description: `Kept for ${String(limits.eventsSentKeptDays)} days once sent, for ${String(limits.eventsDeadKeptDays)} days as dead letters. A page may hold fewer than asked for and still have a next one.`,
  auth: 'key',
  scopes: ['admin', 'read'],
  query: z.strictObject({
    endpoint: EventEndpointId.optional(),
    status: EventStatus.optional(),
    type: EventType.optional(),
    limit: limitParameter,
    cursor: cursorParameter,
  }),
  answers: { 200: { description: 'Events.', json: z.array(EventView), headers: pageHeaders } },
  errors: [],
});

export const getEvent = defineRoute({
  id: 'getEvent',
  method: 'get',
  path: '/api/events/{id}',
  tag: 'events',
  summary: 'One event, with its last tries',
  auth: 'key',
  scopes: ['admin', 'read'],
  params: eventParams,
  answers: { 200: { description: 'The event.', json: EventView } },
  errors: ['not_found'],
});

export const redriveEvent = defineRoute({
  id: 'redriveEvent',
  method: 'post',
  path: '/api/events/{id}/redrive',
  tag: 'events',
  summary: 'Have a dead letter sent anew',
  description: 'With the same `webhook-id`, with all its tries again.',
  auth: 'key',
  scopes: ['admin'],
  params: eventParams,
  answers: { 202: { description: 'It waits to be sent.', json: EventView } },
  errors: ['not_found', 'conflict'],
});
