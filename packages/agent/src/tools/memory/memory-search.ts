import type { MemoryAnswer, MemoryHit } from '@concierge/tenant';
import { z } from 'zod';
import { defineTool } from '../tool.ts';

const LIMIT_DEFAULT = 8;
const LIMIT_MAX = 20;
const OFFSET_MAX = 100;

const HOW =
  'Write the question or the words you look for, in any language; forms of words and typing errors are forgiven. Answers with the passages that fit best, each with where it is from. Passages are cut: read the whole before you rely on it, notes with memory_get, conversations with session_history.';

const kindsOf = { notes: ['note'], conversations: ['session'], all: ['note', 'session'] } as const;

export const memorySearch = defineTool({
  name: 'memory_search',
  domain: 'memory',
  cs: 'narrow',
  description: `Searches what was kept and said before: your notes (MEMORY.md and memory/) and all earlier conversations of this workspace. Use it before you say that you do not know something, and when somebody refers to an earlier agreement, person or number. Not for other files: search_files looks through those, and load_skill knows procedures. ${HOW}`,
  narrowDescription: `Searches what is known about the person you are talking to: the notes kept about that person and your earlier conversations with that person. It knows nothing about anybody else and nothing about the business. Use it when the person refers to something from before. ${HOW}`,
  schema: z.strictObject({
    query: z.string().trim().min(1).max(1000).describe('What you want to know, as in "how long do customers have to return shoes".'),
    scope: z.enum(['all', 'notes', 'conversations']).optional().describe('Where to look. Default all.'),
    limit: z
      .int()
      .min(1)
      .max(LIMIT_MAX)
      .optional()
      .describe(`Passages at most. Default ${String(LIMIT_DEFAULT)}.`),
    offset: z.int().min(0).max(OFFSET_MAX).optional().describe('Passages to leave out at the beginning, to page on. Default 0.'),
  }),
  sideEffect: 'none',
  run: async ({ query, scope = 'all', limit = LIMIT_DEFAULT, offset = 0 }, { memory, sessionId, signal }) => {
    const answer = await memory.search({ text: query, limit, offset, kinds: kindsOf[scope], signal });
    return [...hitLines(answer, { offset, sessionId }), ...notes(answer)].join('\n\n');
  },
});

function hitLines({ hits, total }: MemoryAnswer, { offset, sessionId }: { offset: number; sessionId: string }): string[] {
  if (hits.length === 0)
    return [offset > 0 && total > 0 ? `There are only ${String(total)} results.` : 'Nothing was found. Try other words, or fewer.'];
  const lines = hits.map((hit, place) => `${String(offset + place + 1)}. ${sourceOf(hit, sessionId)}\n${hit.snippet}`);
  const next = offset + hits.length;
  return next < total ? [...lines, `[${String(next)} of ${String(total)} results; continue with offset ${String(next)}]`] : lines;
}

function sourceOf({ kind, ref, title, heading, at, place }: MemoryHit, ownId: string): string {
  const day = at.slice(0, 'YYYY-MM-DD'.length);
  if (kind === 'note') {
    const named = [title, heading].filter((part) => part !== '').join(' › ');
    return `${ref}, line ${String(place)}${named === '' ? '' : ` (${named})`}, changed ${day}`;
  }
  const which = ref === ownId ? 'this conversation' : `conversation ${ref}`;
  const where = heading === '' ? `message #${String(place)}` : 'summary of its beginning';
  return `${which}, ${where} (${title}), ${day}`;
}

/** What the answer may lack, so that nothing found is not taken for nothing there. */
function notes({ unread, meaning, unembedded }: MemoryAnswer): string[] {
  const said: string[] = [];
  const behind = [
    ...(unread.notes > 0 ? [`${String(unread.notes)} notes`] : []),
    ...(unread.sessions > 0 ? [`${String(unread.sessions)} older conversations`] : []),
  ];
  if (behind.length > 0) said.push(`[${behind.join(' and ')} are not in the index yet; each search reads more of them: search again]`);
  if (meaning === 'failed') said.push('[searched by words alone: the embeddings provider could not be reached; other words may find more]');
  else if (unembedded > 0)
    said.push(`[${String(unembedded)} passages were searched by words alone so far; the next search knows more of their meaning]`);
  return said;
}
