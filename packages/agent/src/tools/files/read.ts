import { z } from 'zod';
import { defineTool, ToolError } from '../tool.ts';

const LINES_DEFAULT = 1000;
const LINES_MAX = 5000;
/** More lines than a file may have bytes. */
const LINE_NUMBER_MAX = 10_000_000;
/** Stays under the cap of a result with its line numbers, so that the note about the next page is never what is cut. */
const OUTPUT_MAX_BYTES = 56 * 1024;
const LINE_MAX_CHARACTERS = 2000;

const PAGING = `Lines come numbered ("12\tthe text"); the numbers are not part of the file. Long files come in pages: continue with offset.`;

export const read = defineTool({
  name: 'read',
  description: `Reads a text file of the workspace. ${PAGING}`,
  narrowDescription: `Reads a text file under skills/ or templates/. ${PAGING}`,
  schema: z.strictObject({
    path: z.string().min(1).describe('Relative path, as in "templates/offer.md".'),
    offset: z.int().min(1).max(LINE_NUMBER_MAX).optional().describe('First line to read, from 1. Default 1.'),
    limit: z
      .int()
      .min(1)
      .max(LINES_MAX)
      .optional()
      .describe(`Lines to read at most. Default ${String(LINES_DEFAULT)}.`),
  }),
  sideEffect: 'none',
  run: async ({ path, offset = 1, limit = LINES_DEFAULT }, { files }) => {
    const { text } = await files.readText(path);
    if (text === '') return `${path} is empty.`;
    return page(text, { path, offset, limit });
  },
});

function page(text: string, { path, offset, limit }: { path: string; offset: number; limit: number }): string {
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop(); // A final newline ends the last line; it does not begin another.
  if (offset > lines.length) throw new ToolError(`${path} has ${String(lines.length)} lines; there is none at offset ${String(offset)}.`);
  const shown: string[] = [];
  let bytes = 0;
  for (const [index, line] of lines.slice(offset - 1, offset - 1 + limit).entries()) {
    const numbered = `${String(offset + index)}\t${shorten(line)}`;
    bytes += Buffer.byteLength(numbered) + 1;
    if (bytes > OUTPUT_MAX_BYTES && shown.length > 0) break;
    shown.push(numbered);
  }
  const next = offset + shown.length;
  if (next > lines.length) return shown.join('\n');
  return `${shown.join('\n')}\n[lines ${String(offset)} to ${String(next - 1)} of ${String(lines.length)}; continue with offset ${String(next)}]`;
}

function shorten(line: string): string {
  if (line.length <= LINE_MAX_CHARACTERS) return line;
  return `${line.slice(0, LINE_MAX_CHARACTERS)}… [line cut: ${String(line.length)} characters]`;
}
