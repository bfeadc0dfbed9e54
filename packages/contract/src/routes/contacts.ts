import { z } from 'zod';
import { ContactDetails, ContactKey, ContactListItem } from '../channels/contact.ts';
import { limits } from '../limits.ts';
import { ContactId } from '../turns/chat.ts';
import { cursorParameter, defineRoute, limitParameter, pageHeaders } from './route.ts';

export const listContacts = defineRoute({
  id: 'listContacts',
  method: 'get',
  path: '/api/contacts',
  tag: 'contacts',
  summary: 'Contacts that have written, the last one first',
  description: 'Those with an id of their own: an anonymous one is found by its conversation, see GET /api/sessions/{id}/contact.',
  auth: 'key',
  scopes: ['admin', 'read'],
  query: z.strictObject({
    q: z
      .string()
      .trim()
      .min(1)
      .max(limits.sessionsQueryMaxCharacters)
      .optional()
      .describe('A part of the contact’s id or name, in any case, or another id of theirs.'),
    limit: limitParameter,
    cursor: cursorParameter,
  }),
  answers: { 200: { description: 'Contacts.', json: z.array(ContactListItem), headers: pageHeaders } },
  errors: [],
});

export const getContact = defineRoute({
  id: 'getContact',
  method: 'get',
  path: '/api/contacts/{id}',
  tag: 'contacts',
  summary: 'A contact: identities, conversations, notes',
  auth: 'key',
  scopes: ['admin', 'read'],
  params: z.object({ id: ContactKey }),
  answers: { 200: { description: 'The contact.', json: ContactDetails } },
  errors: ['not_found'],
});

export const getSessionContact = defineRoute({
  id: 'getSessionContact',
  method: 'get',
  path: '/api/sessions/{id}/contact',
  tag: 'contacts',
  summary: 'The contact of a conversation',
  description: 'The same as GET /api/contacts/{id}, for an anonymous contact, too. `not_found` for a conversation of the owner’s own.',
  auth: 'key',
  scopes: ['admin', 'read'],
  params: z.object({ id: ContactId }),
  answers: { 200: { description: 'The contact.', json: ContactDetails } },
  errors: ['not_found'],
});
