import { z } from 'zod';
import { ContactId } from '../turns/chat.ts';
import { SessionListItem, SessionOrigin, SessionView } from '../turns/session.ts';
import { AgentName } from '../tenants/tenant.ts';
import { cursorParameter, limitParameter, pageHeaders } from './parameter.ts';
import { defineRoute } from './route.ts';

const params = z.object({ id: ContactId });

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
  query: z.strictObject({ limit: limitParameter, agent: AgentName.optional(), origin: originParameter, cursor: cursorParameter }),
  answers: { 200: { description: 'Sessions.', json: z.array(SessionListItem), headers: pageHeaders } },
  errors: [],
});

export const getSession = defineRoute({
  id: 'getSession',
  method: 'get',
  path: '/api/sessions/{id}',
  tag: 'sessions',
  summary: 'The whole conversation',
  auth: 'key',
  scopes: ['admin', 'read'],
  params,
  answers: { 200: { description: 'The session with all of its messages.', json: SessionView } },
  errors: ['not_found'],
});

export const deleteSession = defineRoute({
  id: 'deleteSession',
  method: 'delete',
  path: '/api/sessions/{id}',
  tag: 'sessions',
  summary: 'Delete a conversation',
  description: 'With the last conversation of a contact the notes about the contact go, too (see GET /api/memory/contacts).',
  auth: 'key',
  scopes: ['admin'],
  params,
  answers: { 204: { description: 'It is gone.' } },
  errors: ['not_found', 'session_busy'],
});
