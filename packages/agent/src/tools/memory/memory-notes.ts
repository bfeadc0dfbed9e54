import { AppError, ContactId, cutText } from '@concierge/contract';
import { z } from 'zod';
import type { ToolAccess } from '../tool-access.ts';
import { defineTool, ToolError } from '../tool.ts';
import type { TurnMemory } from '../tool-context.ts';
import type { MemoryAnswer, MemoryHit } from '@concierge/tenant';

/** Stays under the cap of a result, so that the note about the next page is never what is cut. */
const OUTPUT_MAX_BYTES = 56 * 1024;
/** More lines than a file may have bytes. */
const LINE_NUMBER_MAX = 10_000_000;
const TEXT_MAX_CHARACTERS = 20_000;
const LISTED_MAX = 30;

export const memoryGet = defineTool({
  name: 'memory_get',
  domain: 'memory',
  cs: 'narrow',
  description:
    'Reads a kept note by its reference, as memory_write and memory_search answer it. A long one comes in pages: continue with offset. Not for conversations (session_history) or other files (read).',
  narrowDescription:
    'Reads a note kept about the person you are talking to, by its reference as memory_write and memory_search answer it. A long one comes in pages: continue with offset. Not for conversations (session_history).',
  schema: z.strictObject({
    ref: z.string().min(1).max(512).describe('Reference of the note, as in "memory/opening-hours.md" or "MEMORY.md".'),
    offset: z.int().min(1).max(LINE_NUMBER_MAX).optional().describe('First line to read, from 1, as memory_search names it. Default 1.'),
  }),
  sideEffect: 'none',
  run: async ({ ref, offset = 1 }, { memory }) => {
    try {
      const { text } = await memory.get(ref);
      return text.trim() === '' ? 'The note is empty.' : page(text, ref, offset);
    } catch (error) {
      if (error instanceof AppError && error.code === 'not_found') throw await unknownNote(memory, ref, error);
      throw error;
    }
  },
});

function page(text: string, ref: string, offset: number): string {
  const lines = text.split('\n');
  if (offset > lines.length) throw new ToolError(`${ref} has ${String(lines.length)} lines; there is none at offset ${String(offset)}.`);
  let bytes = 0;
  let end = offset - 1;
  while (end < lines.length && bytes + Buffer.byteLength(lines[end] ?? '') < OUTPUT_MAX_BYTES) {
    bytes += Buffer.byteLength(lines[end] ?? '') + 1;
    end += 1;
  }
  // Pages a single line that is longer than a page: its beginning, and then the rest.
  if (end < offset)
    return `${cutText(lines[offset - 1] ?? '', OUTPUT_MAX_BYTES).text}\n[line ${String(offset)} of ${String(lines.length)}, cut]`;
  const shown = lines.slice(offset - 1, end).join('\n');
  if (end === lines.length) return shown;
  return `${shown}\n[lines ${String(offset)} to ${String(end)} of ${String(lines.length)}; continue with offset ${String(end + 1)}]`;
}

export const memoryWrite = defineTool({
  name: 'memory_write',
  domain: 'memory',
  cs: 'narrow',
  description:
    'Keeps a note for later conversations: a fact, a preference, a decision, something promised. One matter per note, in whole sentences that make sense without this conversation. Answers with the reference of the note.',
  narrowDescription:
    'Keeps a note about the person you are talking to for later conversations with that person: a fact, a preference, something promised. One matter per note, in whole sentences. Answers with the reference of the note.',
  schema: z.strictObject({
    text: z.string().min(1).max(TEXT_MAX_CHARACTERS).describe('The note.'),
    title: z
      .string()
      .min(1)
      .max(120)
      .optional()
      .describe(
        'A few words that say what the note is about; notes with the same title are kept together. Without it the note is part of every later prompt: only for what matters always.',
      ),
  }),
  sideEffect: 'writes',
  run: async ({ text, title }, { memory, access }) => {
    try {
      const { ref } = await memory.write({ text, title });
      return `Kept as ${ref}.`;
    } catch (error) {
      if (error instanceof AppError && error.code === 'memory_quota') throw new ToolError(quotaMessage(error, access), { cause: error });
      if (error instanceof AppError && error.code === 'too_large') {
        throw new ToolError('The note of this title is full. Keep it under another title.', { cause: error });
      }
      throw error;
    }
  },
});

/** Leaves out of an error for cs what a customer has no use for. */
function quotaMessage({ message }: AppError, access: ToolAccess): string {
  if (access === 'cs')
    return 'Nothing was kept: there is no room for more notes. Go on without the note, and do not promise to remember it.';
  return `Nothing was kept. ${message} Tell the owner; memory_forget and shorter notes make room, and the limit is part of the plan.`;
}

export const memoryForget = defineTool({
  name: 'memory_forget',
  domain: 'memory',
  cs: 'never',
  description:
    'Removes a kept note for good, with everything in it. Only when the owner wants it gone, or when it is wrong and its right version is kept elsewhere; to correct a part of a note use edit. Conversations are not removed here: the owner deletes them.',
  schema: z.strictObject({
    ref: z.string().min(1).max(512).describe('Reference of the note, as memory_write and memory_search give it: "memory/old-prices.md".'),
  }),
  sideEffect: 'writes',
  run: async ({ ref }, { memory }) => {
    if (ref === 'MEMORY.md') {
      throw new ToolError('MEMORY.md holds many matters and is not removed as a whole. Take out what is to be forgotten with edit.');
    }
    try {
      await memory.forget(ref);
    } catch (error) {
      if (error instanceof AppError && error.code === 'not_found') throw await unknownNote(memory, ref, error);
      throw error;
    }
    return `Removed ${ref}.`;
  },
});

/** The error for an unknown reference, with the existing ones. */
async function unknownNote(memory: Pick<TurnMemory, 'list'>, ref: string, cause: unknown): Promise<ToolError> {
  if (ContactId.safeParse(ref).success)
    return new ToolError(`${ref} is a conversation and no note. Read it with session_history.`, { cause });
  const newest = (await memory.list()).toSorted((left, right) => right.mtimeMs - left.mtimeMs).slice(0, LISTED_MAX);
  const known = newest.length === 0 ? 'Nothing has been kept yet.' : `The newest are: ${newest.map(({ path }) => path).join(', ')}.`;
  return new ToolError(`There is no note "${ref}". ${known}`, { cause });
}

const LIMIT_DEFAULT = 8;
const LIMIT_MAX = 20;
const OFFSET_MAX = 100;

const HOW =
  'Write the question or the words you look for, in any language; forms of words and typing errors are forgiven. Answers with the passages that fit best, each with where it is from. Passages are cut: read the whole before you rely on it, notes with memory_get, conversations with session_history.';

const kindsByScope = { notes: ['note'], conversations: ['session'], all: ['note', 'session'] } as const;

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
  run: async ({ query, scope = 'all', limit = LIMIT_DEFAULT, offset = 0 }, { memory, sessionId, signal, meter }) => {
    const answer = await memory.search({ text: query, limit, offset, kinds: kindsByScope[scope], signal, meter });
    return [...hitLines(answer, { offset, sessionId }), ...notes(answer)].join('\n\n');
  },
});

function hitLines({ hits, total }: MemoryAnswer, { offset, sessionId }: { offset: number; sessionId: string }): string[] {
  if (hits.length === 0)
    return [offset > 0 && total > 0 ? `There are only ${String(total)} results.` : 'Nothing was found. Try other words, or fewer.'];
  const lines = hits.map((hit, index) => `${String(offset + index + 1)}. ${describeSource(hit, sessionId)}\n${hit.snippet}`);
  const next = offset + hits.length;
  return next < total ? [...lines, `[${String(next)} of ${String(total)} results; continue with offset ${String(next)}]`] : lines;
}

function describeSource({ kind, ref, title, heading, at, place }: MemoryHit, ownId: string): string {
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
