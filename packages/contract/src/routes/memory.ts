import { z } from 'zod';
import { integerParameter } from './parameter.ts';
import { defineRoute } from './route.ts';

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
