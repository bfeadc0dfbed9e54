import { z } from 'zod';
import { ContactKey } from '../../channels/contact.ts';
import { ContactId } from '../../turns/chat.ts';
import { limits } from '../../limits.ts';
import { cursorParameter, integerParameter, limitParameter, pageHeaders, defineRoute } from '../route.ts';

const HITS_MAX = 50;

export const MemoryNote = z
  .object({
    /** Path of the note: MEMORY.md, or below memory/. */
    ref: z.string(),
    size: z.int().nonnegative(),
    updatedAt: z.iso.datetime(),
  })
  .meta({ id: 'MemoryNote' });
export type MemoryNote = z.infer<typeof MemoryNote>;

/** A passage that fits. */
export const MemoryHit = z
  .object({
    kind: z.enum(['note', 'session']),
    /** Path of the note, or id of the session. */
    ref: z.string(),
    title: z.string(),
    /** Headings that lead to the passage, or ''. */
    heading: z.string(),
    at: z.iso.datetime(),
    /** A line of the note, the number of a message of the session; from 1. */
    place: z.int().positive(),
    snippet: z.string(),
  })
  .meta({ id: 'MemoryHit' });
export type MemoryHit = z.infer<typeof MemoryHit>;

/** `unread`: notes and sessions that changed and that this search did not come to; the next one goes on. */
const MemorySearchResult = z
  .object({ hits: z.array(MemoryHit), unread: z.object({ notes: z.int().nonnegative(), sessions: z.int().nonnegative() }) })
  .meta({ id: 'MemorySearchResult' });

const MemoryNotes = z.object({ notes: z.array(MemoryNote) }).meta({ id: 'MemoryNotes' });

export const searchMemory = defineRoute({
  id: 'searchMemory',
  method: 'get',
  path: '/api/memory',
  tag: 'memory',
  summary: 'The owner’s notes, or what is found in them and in past sessions',
  description:
    'Without `q` the notes, last changed first. With it passages of notes and sessions that fit, best first; by words alone, while the agents’ own search also goes by meaning where embeddings are configured. Notes about contacts are not among them.',
  auth: 'key',
  scopes: ['admin', 'read'],
  query: z.strictObject({
    q: z.string().trim().min(1).max(1000).optional().meta({ description: 'A question, or words to look for.' }),
    limit: integerParameter({ min: 1, max: HITS_MAX, default: 10 }),
  }),
  answers: { 200: { description: 'Hits with `q`, notes without.', json: z.union([MemorySearchResult, MemoryNotes]) } },
  errors: [],
});

/** A contact that agents keep notes about, and these notes. */
export const NotedContact = z
  .object({
    id: ContactKey,
    /** The contact's own id, and what it is called; null where only the notes name it. */
    sender: z.string().nullable(),
    displayName: z.string().nullable(),
    notes: z.array(MemoryNote),
  })
  .meta({ id: 'NotedContact' });
export type NotedContact = z.infer<typeof NotedContact>;

const contactParams = z.object({ id: ContactKey });
const noteParams = z.object({ id: ContactKey, ref: z.string().min(1).max(4096) });

export const listNotedContacts = defineRoute({
  id: 'listNotedContacts',
  method: 'get',
  path: '/api/memory/contacts',
  tag: 'memory',
  summary: 'Contacts with notes',
  description:
    'Agents that talk to contacts keep notes about each of them, which are in every prompt of that contact. With `sender` or `contact_id` the one contact that it names, if there are notes. When the last conversation of a contact is deleted, the notes about the contact are deleted with it.',
  auth: 'key',
  scopes: ['admin', 'read'],
  query: z.strictObject({
    sender: z.string().min(1).max(limits.senderMaxCharacters).optional().meta({ description: 'The id under which the contact writes.' }),
    contact_id: ContactId.optional().meta({ description: 'A conversation of the contact.' }),
    limit: limitParameter,
    cursor: cursorParameter,
  }),
  answers: { 200: { description: 'Contacts with their notes, without the text.', json: z.array(NotedContact), headers: pageHeaders } },
  errors: [],
});

export const getNotedContact = defineRoute({
  id: 'getNotedContact',
  method: 'get',
  path: '/api/memory/contacts/{id}',
  tag: 'memory',
  summary: 'The notes about one contact',
  auth: 'key',
  scopes: ['admin', 'read'],
  params: contactParams,
  answers: { 200: { description: 'The contact with its notes, without the text.', json: NotedContact } },
  errors: ['not_found'],
});

export const forgetContact = defineRoute({
  id: 'forgetContact',
  audit: 'contact.forget',
  method: 'delete',
  path: '/api/memory/contacts/{id}',
  tag: 'memory',
  summary: 'Forget everything that is noted about a contact',
  description: 'The notes, and what they are found by. Conversations stay: see DELETE /api/sessions/{id}.',
  auth: 'key',
  scopes: ['admin'],
  params: contactParams,
  answers: { 204: { description: 'The notes are gone.' } },
  errors: ['not_found'],
});

export const getContactNote = defineRoute({
  id: 'getContactNote',
  method: 'get',
  path: '/api/memory/contacts/{id}/notes/{ref}',
  rest: true,
  tag: 'memory',
  summary: 'Read a note about a contact',
  auth: 'key',
  scopes: ['admin', 'read'],
  params: noteParams,
  answers: { 200: { description: 'The text of the note.', text: 'text/plain; charset=utf-8' } },
  errors: ['not_found', 'too_large'],
});

export const forgetContactNote = defineRoute({
  id: 'forgetContactNote',
  audit: 'note.forget',
  method: 'delete',
  path: '/api/memory/contacts/{id}/notes/{ref}',
  rest: true,
  tag: 'memory',
  summary: 'Forget a note about a contact',
  auth: 'key',
  scopes: ['admin'],
  params: noteParams,
  answers: { 204: { description: 'The note is gone.' } },
  errors: ['not_found'],
});
