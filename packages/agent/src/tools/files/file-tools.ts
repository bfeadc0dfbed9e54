import { hasHiddenPart, withoutEnding } from '@concierge/contract';
import { z } from 'zod';
import { replaceOnce } from '../replace-once.ts';
import { defineTool, ToolError } from '../tool.ts';

const ENTRIES_MAX = 500;

const LINES_DEFAULT = 1000;
const LINES_MAX = 5000;
/** More lines than a file may have bytes. */
const LINE_NUMBER_MAX = 10_000_000;
/** Stays under the cap of a result with its line numbers, so that the note about the next page is never what is cut. */
const OUTPUT_MAX_BYTES = 56 * 1024;
const LINE_MAX_CHARACTERS = 2000;

/** Arguments of every tool that gives a text page by page. */
export const pageArguments = {
  offset: z.int().min(1).max(LINE_NUMBER_MAX).optional().describe('First line to read, from 1. Default 1.'),
  limit: z
    .int()
    .min(1)
    .max(LINES_MAX)
    .optional()
    .describe(`Lines to read at most. Default ${String(LINES_DEFAULT)}.`),
};

export interface Page {
  /** What the text is called in notes. */
  readonly name: string;
  readonly offset: number | undefined;
  readonly limit: number | undefined;
}

const PAGING = `Lines come numbered ("12\tthe text"); the numbers are not part of the file. Long files come in pages: continue with offset.`;

export const read = defineTool({
  name: 'read',
  domain: 'files',
  cs: 'narrow',
  description: `Reads a text file of the workspace, UTF-8, at most 2 MiB. ${PAGING} Not for what a user attached: that is view_attachment.`,
  narrowDescription: `Reads a text file under skills/ or templates/. ${PAGING} Not for a skill you are to follow: that is load_skill.`,
  schema: z.strictObject({
    path: z.string().min(1).describe('Relative path, as in "templates/offer.md".'),
    ...pageArguments,
  }),
  sideEffect: 'none',
  run: async ({ path, offset, limit }, { files }) => {
    const { text } = await files.readText(path);
    if (text === '') return `${path} is empty.`;
    const note = text.includes('\r\n') ? '\n[lines end with CRLF]' : '';
    return buildPage(text, { name: path, offset, limit }) + note;
  },
});

/**
 * One page of a text, each line with its number, and a note about where the next begins.
 * @throws ToolError for an offset behind the end
 */
export function buildPage(text: string, { name, offset = 1, limit = LINES_DEFAULT }: Page): string {
  const lines = splitLines(text);
  if (offset > lines.length) throw new ToolError(`${name} has ${String(lines.length)} lines; there is none at offset ${String(offset)}.`);
  const shown: string[] = [];
  let bytes = 0;
  for (const [index, line] of lines.slice(offset - 1, offset - 1 + limit).entries()) {
    const numbered = `${String(offset + index)}\t${shorten(line.replace(/\r$/u, ''))}`;
    bytes += Buffer.byteLength(numbered) + 1;
    if (bytes > OUTPUT_MAX_BYTES && shown.length > 0) break;
    shown.push(numbered);
  }
  const next = offset + shown.length;
  if (next > lines.length) return shown.join('\n');
  return `${shown.join('\n')}\n[lines ${String(offset)} to ${String(next - 1)} of ${String(lines.length)}; continue with offset ${String(next)}]`;
}

/** Does the text go on one page as it is, without numbers and notes? */
export function fitsOnPage(text: string): boolean {
  if (text.length > OUTPUT_MAX_BYTES || Buffer.byteLength(text) > OUTPUT_MAX_BYTES) return false;
  const lines = splitLines(text);
  return lines.length <= LINES_DEFAULT && lines.every((line) => line.length <= LINE_MAX_CHARACTERS);
}

/** For texts whose lines have no meaning: long ones are broken between words, so that none of them is cut. */
export function wrapLines(text: string): string {
  return text
    .split(/\r?\n|\f/u)
    .flatMap(wrapLine)
    .join('\n');
}

function wrapLine(line: string): string[] {
  const pieces: string[] = [];
  let rest = line;
  while (rest.length > LINE_MAX_CHARACTERS) {
    const space = rest.lastIndexOf(' ', LINE_MAX_CHARACTERS);
    const end = space > LINE_MAX_CHARACTERS / 2 ? space + 1 : LINE_MAX_CHARACTERS - 1;
    // Not between the halves of a pair.
    const at = /[\uD800-\uDBFF]/u.test(rest.charAt(end - 1)) ? end - 1 : end;
    pieces.push(rest.slice(0, at));
    rest = rest.slice(at);
  }
  return [...pieces, rest];
}

/** A final line break ends the last line; it does not begin another. */
function splitLines(text: string): string[] {
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  return lines;
}

function shorten(line: string): string {
  if (line.length <= LINE_MAX_CHARACTERS) return line;
  return `${line.slice(0, LINE_MAX_CHARACTERS).toWellFormed()}… [line cut: ${String(line.length)} characters]`;
}

export const write = defineTool({
  name: 'write',
  domain: 'files',
  cs: 'never',
  description:
    'Writes a whole text file of the workspace, replacing what was there; folders are made as needed. To change part of a file use edit, which needs less text and cannot lose the rest.',
  schema: z.strictObject({
    path: z.string().min(1).describe('Relative path, as in "templates/offer.md".'),
    content: z.string().describe('The whole new content.'),
  }),
  sideEffect: 'writes',
  run: async ({ path, content }, { files }) => {
    const { created } = await files.writeText(path, content);
    return `${created ? 'Created' : 'Replaced'} ${path}: ${String(Buffer.byteLength(content))} bytes, ${String(lineCount(content))} lines.`;
  },
});

function lineCount(text: string): number {
  if (text === '') return 0;
  return text.split('\n').length - (text.endsWith('\n') ? 1 : 0);
}

export const edit = defineTool({
  name: 'edit',
  domain: 'files',
  cs: 'never',
  description:
    'Replaces one passage of a text file. `find` must be in the file exactly once, character by character, line breaks and indentation included and without the line numbers that read shows; take enough of its surroundings to make it unique. Answers with the changed lines. For a new file, or one that changes from end to end, use write.',
  schema: z.strictObject({
    path: z.string().min(1).describe('Relative path of an existing file.'),
    find: z.string().min(1).describe('The passage as it is now.'),
    replace: z.string().describe('What stands there afterwards; empty to delete.'),
  }),
  sideEffect: 'writes',
  run: async ({ path, find, replace }, { files }) => {
    let diff = '';
    await files.updateText(path, (text) => {
      const changed = replaceOnce(text, { find, replace, path });
      diff = changed.diff;
      return changed.text;
    });
    return `Changed ${path}:\n${diff}`;
  },
});

export const listFiles = defineTool({
  name: 'list_files',
  domain: 'files',
  cs: 'never',
  description:
    'Lists the files and folders of the workspace by path, with sizes in bytes. Folders end with "/". Names that begin with a dot are left out. To find text in files use search_files.',
  schema: z.strictObject({
    path: z.string().optional().describe('Folder to list. Default: the whole workspace.'),
    recursive: z.boolean().optional().describe('Also list what is inside the folders. Default false.'),
    hidden: z.boolean().optional().describe('Also list names that begin with a dot. Default false.'),
  }),
  sideEffect: 'none',
  run: async ({ path = '', recursive = false, hidden = false }, { files }) => {
    const folder = findFolder(path);
    // One more than fits shows whether there are more.
    const entries = await files.list(folder, { recursive, limit: ENTRIES_MAX + 1, ...(!hidden && { isHidden: matchHidden(folder) }) });
    if (entries.length === 0) return `${folder === '' ? 'The workspace' : folder} is empty.`;
    const lines = entries
      .slice(0, ENTRIES_MAX)
      .map((entry) => (entry.kind === 'folder' ? `${entry.path}/` : `${entry.path} (${String(entry.size)} bytes)`));
    const isCut = entries.length > ENTRIES_MAX;
    return [...lines, ...(isCut ? [`[more than ${String(lines.length)} entries; list a folder inside]`] : [])].join('\n');
  },
});

/** Whether any part of a path, below the folder that was asked for, begins with a dot. */
export function matchHidden(folder: string): (path: string) => boolean {
  return (path) => hasHiddenPart(path.slice(folder.length));
}

/** A folder as models name it: ".", "./" and "/" are the whole workspace, and a slash at the end has no meaning. */
export function findFolder(path: string): string {
  const bare = withoutEnding(path, '/');
  return bare === '.' ? '' : bare;
}
