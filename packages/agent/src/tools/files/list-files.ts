import { z } from 'zod';
import { defineTool } from '../tool.ts';
import { folderOf } from './folder-of.ts';

const ENTRIES_MAX = 500;
/** Hidden ones are left out after listing. */
const LISTED_MAX = 5000;

export const listFiles = defineTool({
  name: 'list_files',
  description:
    'Lists the files and folders of the workspace by path, with sizes in bytes. Folders end with "/". Names that begin with a dot are left out. To find text in files use search_files.',
  schema: z.strictObject({
    path: z.string().optional().describe('Folder to list. Default: the whole workspace.'),
    recursive: z.boolean().optional().describe('Also list what is inside the folders. Default false.'),
    hidden: z.boolean().optional().describe('Also list names that begin with a dot. Default false.'),
  }),
  sideEffect: 'none',
  run: async ({ path = '', recursive = false, hidden = false }, { files }) => {
    const folder = folderOf(path);
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
