import { AppError } from '@concierge/contract';
import { z } from 'zod';
import { cutText } from '../cut-text.ts';
import { defineTool, ToolError } from '../tool.ts';
import { unknownNote } from './unknown-note.ts';

/** Stays under the cap of a result, so that the note about the next page is never what is cut. */
const OUTPUT_MAX_BYTES = 56 * 1024;
/** More lines than a file may have bytes. */
const LINE_NUMBER_MAX = 10_000_000;

export const memoryGet = defineTool({
  name: 'memory_get',
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
  // A single line that is longer than a page: its beginning, and on with the next.
  if (end < offset)
    return `${cutText(lines[offset - 1] ?? '', OUTPUT_MAX_BYTES).text}\n[line ${String(offset)} of ${String(lines.length)}, cut]`;
  const shown = lines.slice(offset - 1, end).join('\n');
  if (end === lines.length) return shown;
  return `${shown}\n[lines ${String(offset)} to ${String(end)} of ${String(lines.length)}; continue with offset ${String(end + 1)}]`;
}
