import { z } from 'zod';
import { TurnStatus, TurnView } from '../turns/turn.ts';
import { cursorParameter, limitParameter, pageHeaders } from './parameter.ts';
import { defineRoute } from './route.ts';

/** `<epoch>-<n>`: an entry of the turn's stream. */
const lastEventId = z.string().regex(/^[0-9]{1,16}-[0-9]{1,16}$/u, 'is not an event id');
const params = z.object({ id: z.string().min(1).max(128) });

/** Empty: no event was seen yet. */
export const lastEventHeaders = z.object({ 'last-event-id': z.union([z.literal(''), lastEventId]).optional() });

export const listTurns = defineRoute({
  id: 'listTurns',
  method: 'get',
  path: '/api/turns',
  tag: 'turns',
  summary: 'List turns, newest first',
  auth: 'key',
  scopes: ['admin', 'read'],
  query: z.strictObject({
    status: TurnStatus.optional(),
    contact_id: z.string().min(1).max(128).optional().describe('Turns of this conversation alone.'),
    limit: limitParameter,
    cursor: cursorParameter,
  }),
  answers: { 200: { description: 'Turns, without their steps.', json: z.array(TurnView), headers: pageHeaders } },
  errors: [],
});

export const getTurn = defineRoute({
  id: 'getTurn',
  method: 'get',
  path: '/api/turns/{id}',
  tag: 'turns',
  summary: 'State, timings, attempts, usage and steps of one turn',
  auth: 'key',
  scopes: ['admin', 'cs', 'read'],
  params,
  answers: { 200: { description: 'The turn.', json: TurnView } },
  errors: ['not_found'],
});

/** Resumes on any gateway (contract §3). */
export const followTurn = defineRoute({
  id: 'followTurn',
  method: 'get',
  path: '/api/turns/{id}/events',
  tag: 'turns',
  summary: 'Follow or resume the events of a turn',
  description:
    'With `Last-Event-ID` the stream goes on after that event, missing and repeating nothing, for at least an hour after the end of the turn.',
  auth: 'key',
  scopes: ['admin', 'cs', 'read'],
  waitsForTurn: true,
  params,
  query: z.strictObject({ lastEventId: lastEventId.optional() }),
  headers: lastEventHeaders,
  answers: {
    200: { description: 'The events of the turn.', events: true },
    204: {
      description:
        'The turn has ended, and `Last-Event-ID` is its last event: there is nothing more, and an EventSource does not come back.',
    },
  },
  errors: ['not_found'],
});

export const cancelTurn = defineRoute({
  id: 'cancelTurn',
  method: 'post',
  path: '/api/turns/{id}/cancel',
  tag: 'turns',
  summary: 'Cancel a turn that waits or runs',
  description: 'Has no effect on a turn that has ended.',
  auth: 'key',
  scopes: ['admin', 'cs'],
  params,
  answers: { 202: { description: 'The turn as it stands; it ends in `done` with `finishReason: cancelled`.', json: TurnView } },
  errors: ['not_found'],
});
