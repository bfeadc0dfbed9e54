import { withoutEnding } from '@concierge/contract';
import { z } from 'zod';
import { pageArguments, buildPage } from '../page-lines.ts';
import { replaceOnce } from '../replace-once.ts';
import { defineTool } from '../tool.ts';

const ENTRIES_MAX = 500;
/** Hidden ones are left out after listing. */
const LISTED_MAX = 5000;

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
    const all = await files.list(folder, { recursive, limit: LISTED_MAX });
    const entries = all.filter((entry) => hidden || !isHidden(entry.path.slice(folder.length)));
    if (entries.length === 0) return `${folder === '' ? 'The workspace' : folder} is empty.`;
    const lines = entries
      .slice(0, ENTRIES_MAX)
      .map((entry) => (entry.kind === 'folder' ? `${entry.path}/` : `${entry.path} (${String(entry.size)} bytes)`));
    const isCut = entries.length > ENTRIES_MAX || all.length === LISTED_MAX;
    return [...lines, ...(isCut ? [`[more than ${String(lines.length)} entries; list a folder inside]`] : [])].join('\n');
  },
});

/** Is any part of this path, below the folder that was asked for, one that begins with a dot? */
export function isHidden(path: string): boolean {
  return path.split('/').some((part) => part.startsWith('.'));
}

/** A folder as models name it: ".", "./" and "/" are the whole workspace, and a slash at the end has no meaning. */
export function findFolder(path: string): string {
  const bare = withoutEnding(path, '/');
  return bare === '.' ? '' : bare;
}
