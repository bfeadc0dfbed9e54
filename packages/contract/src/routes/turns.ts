import { z } from 'zod';
import { Channel } from '../channels/channel.ts';
import { StaffName } from '../channels/staff-note.ts';
import { errorCodeNames } from '../errors/error-code.ts';
import { limits } from '../limits.ts';
import { TurnTrace } from '../turns/trace.ts';
import { TurnOrigin, TurnStatus, TurnView } from '../turns/turn.ts';
import { cursorParameter, flagParameter, integerParameter, limitParameter, pageHeaders, defineRoute } from './route.ts';
import { ContactId } from '../turns/chat.ts';
import {
  SessionForkBody,
  SessionLabelBody,
  SessionLabelView,
  SessionListItem,
  SessionOrigin,
  SessionPage,
  SessionState,
  SessionView,
} from '../turns/session.ts';
import { AgentName } from '../tenants/tenant.ts';

/** `<epoch>-<n>`: an entry of the turn's stream. */
const lastEventId = z.string().regex(/^[0-9]{1,16}-[0-9]{1,16}$/u, 'is not an event id');
const turnParams = z.object({ id: z.string().min(1).max(128) });

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
    agent: AgentName.optional(),
    channel: Channel.optional(),
    origin: TurnOrigin.optional(),
    error: z.enum(errorCodeNames).optional().describe('Failed turns with this code.'),
    contact_id: z.string().min(1).max(128).optional().describe('Turns of this conversation alone.'),
    limit: limitParameter,
    cursor: cursorParameter,
  }),
  answers: { 200: { description: 'Turns, without their steps; those that wait say why.', json: z.array(TurnView), headers: pageHeaders } },
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
  params: turnParams,
  answers: { 200: { description: 'The turn.', json: TurnView } },
  errors: ['not_found'],
});

export const getTurnTrace = defineRoute({
  id: 'getTurnTrace',
  method: 'get',
  path: '/api/turns/{id}/trace',
  tag: 'turns',
  summary: 'The life of a turn: waits, prompt, model calls, tools, what was sent',
  description:
    'Spans in order of time, from the arrival of the request to the receipts of what was sent. Names, times, tokens and money; no text of a message, and no input or output of a tool.',
  auth: 'key',
  scopes: ['admin', 'cs', 'read'],
  params: turnParams,
  answers: { 200: { description: 'The trace.', json: TurnTrace } },
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
  params: turnParams,
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

export const followFeed = defineRoute({
  id: 'followFeed',
  method: 'get',
  path: '/api/feed',
  tag: 'turns',
  summary: 'Hear what changes: turns, conversations, handoffs, schedules, deliveries',
  description:
    'An event names what has changed, so that a page reads it again: `event: turn`, `data: {"id","contact_id","status"}`; `session`, `handoff` (its `id` is the contact_id), `schedule` and `delivery` with `data: {"id"}`. `event: again` comes first, and whenever changes may have been missed or were too many to name: read everything that is shown again. Changes are sent several times a second at most, one thing once. The stream ends after ten minutes at most; open it again.',
  auth: 'key',
  scopes: ['admin', 'read'],
  uncounted: true,
  answers: { 200: { description: 'Changes, as they come.', text: 'text/event-stream' } },
  errors: [],
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
  params: turnParams,
  answers: { 202: { description: 'The turn as it stands; it ends in `done` with `finishReason: cancelled`.', json: TurnView } },
  errors: ['not_found'],
});

export const retryTurn = defineRoute({
  id: 'retryTurn',
  audit: 'turn.retry',
  method: 'post',
  path: '/api/turns/{id}/retry',
  tag: 'turns',
  summary: 'Accept once more what a failed or cancelled turn had asked',
  description:
    'In the same conversation, with the rights of its agent, as far as the key that asked reaches. A turn is accepted again once: a second call answers with the same new turn. Only of turns that a client asked for; a message of a channel and a run of a schedule have rules of their own.',
  auth: 'key',
  scopes: ['admin'],
  params: turnParams,
  answers: { 202: { description: 'The new turn.', json: TurnView } },
  errors: ['not_found', 'conflict', 'session_busy', 'too_many_waiting', 'overloaded'],
});

const sessionParams = z.object({ id: ContactId });

const anyOrigin = `(?:${SessionOrigin.options.join('|')})`;

// bounded-expression: made of the names above, at most as many as there are.
const originList = new RegExp(`^${anyOrigin}(?:,${anyOrigin}){0,${String(SessionOrigin.options.length - 1)}}$`, 'u');

const originParameter = z
  .string()
  .regex(originList, 'must be origins, with commas between them')
  .transform((text) => SessionOrigin.array().parse(text.split(',')))
  .optional()
  .meta({ description: `Sessions that one of these began, with commas between them: ${SessionOrigin.options.join(', ')}.` });

/** GET /api/sessions (service interface). */
export const listSessions = defineRoute({
  id: 'listSessions',
  method: 'get',
  path: '/api/sessions',
  tag: 'sessions',
  summary: 'List sessions, most recently used first',
  auth: 'key',
  scopes: ['admin', 'read'],
  query: z.strictObject({
    limit: limitParameter,
    agent: AgentName.optional(),
    origin: originParameter,
    channel: Channel.optional(),
    sender: z.string().min(1).max(limits.senderMaxCharacters).optional().describe('The exact id of a contact.'),
    state: SessionState.optional(),
    pinned: z.enum(['true', 'false']).optional().describe('Pinned ones alone, or the others.'),
    assignee: StaffName.optional().describe('Conversations that this staff member looks after.'),
    contacts: flagParameter.describe('Conversations with contacts alone, none of the owner’s own.'),
    q: z
      .string()
      .trim()
      .min(1)
      .max(limits.sessionsQueryMaxCharacters)
      .optional()
      .describe('A part of the title, of the last message, of the contact’s id or name, in any case.'),
    cursor: cursorParameter,
  }),
  answers: { 200: { description: 'Sessions.', json: z.array(SessionListItem), headers: pageHeaders } },
  errors: [],
});

export const getSession = defineRoute({
  id: 'getSession',
  method: 'get',
  path: '/api/sessions/{id}',
  tag: 'sessions',
  summary: 'The whole conversation, or a page of it',
  description:
    'With `limit` the messages of the last turns, with the records of these turns; go on with `before`. Without it everything, and no records.',
  auth: 'key',
  scopes: ['admin', 'read'],
  params: sessionParams,
  query: z.strictObject({
    limit: integerParameter({ min: 0, max: limits.sessionsListMax, default: 0 }).describe('Turns of one page; 0: all messages.'),
    before: z.string().min(1).max(200).optional().describe('`before` of the page that was read.'),
  }),
  answers: { 200: { description: 'The session with its messages.', json: z.union([SessionPage, SessionView]) } },
  errors: ['not_found'],
});

export const deleteSession = defineRoute({
  id: 'deleteSession',
  audit: 'session.delete',
  method: 'delete',
  path: '/api/sessions/{id}',
  tag: 'sessions',
  summary: 'Delete a conversation',
  description: 'With the last conversation of a contact the notes about the contact go, too (see GET /api/memory/contacts).',
  auth: 'key',
  scopes: ['admin'],
  params: sessionParams,
  answers: { 204: { description: 'It is gone.' } },
  errors: ['not_found', 'session_busy'],
});

/** What was said stays as it was said: another question begins another conversation. */
export const forkSession = defineRoute({
  id: 'forkSession',
  audit: 'session.fork',
  method: 'post',
  path: '/api/sessions/{id}/fork',
  tag: 'sessions',
  summary: 'Begin another conversation with the messages up to a turn',
  description:
    'The conversation stays as it is; the new one has its messages up to the turn, or up to the one before it, and goes on with the next message that names its id. Turns, their usage and their cost stay with the first. Only of conversations with agents for the owner; `conflict` for others, and where nothing comes before the turn.',
  auth: 'key',
  scopes: ['admin'],
  params: sessionParams,
  body: { kind: 'json', schema: SessionForkBody },
  answers: { 201: { description: 'The new conversation.', json: SessionView } },
  errors: ['not_found', 'conflict'],
});

export const labelSession = defineRoute({
  id: 'labelSession',
  audit: 'session.label',
  method: 'patch',
  path: '/api/sessions/{id}',
  tag: 'sessions',
  summary: 'Rename or pin a conversation',
  description:
    'What is left out stays as it is. The name is what lists, searches and the conversation itself show from now on; a running turn is not disturbed.',
  auth: 'key',
  scopes: ['admin'],
  params: sessionParams,
  body: { kind: 'json', schema: SessionLabelBody },
  answers: { 200: { description: 'How it stands now.', json: SessionLabelView } },
  errors: ['not_found'],
});
