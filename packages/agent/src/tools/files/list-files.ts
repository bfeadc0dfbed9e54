import { z } from 'zod';
import { defineTool } from '../tool.ts';

const ENTRIES_MAX = 500;

export const listFiles = defineTool({
  name: 'list_files',
  description: 'Lists the files and folders of the workspace, with sizes. Folders end with "/".',
  schema: z.strictObject({
    path: z.string().optional().describe('Folder to list. Default: the whole workspace.'),
    recursive: z.boolean().optional().describe('Also list what is inside the folders. Default false.'),
  }),
  sideEffect: 'none',
  run: async ({ path = '', recursive = false }, { files }) => {
    const folder = path.replace(/^\.?\/*$/u, '').replace(/\/+$/u, '');
    const entries = await files.list(folder, { recursive, limit: ENTRIES_MAX + 1 });
    if (entries.length === 0) return `${folder === '' ? 'The workspace' : folder} is empty.`;
    const lines = entries
      .slice(0, ENTRIES_MAX)
      .map((entry) => (entry.kind === 'folder' ? `${entry.path}/` : `${entry.path} (${String(entry.size)} bytes)`));
    const note = entries.length > ENTRIES_MAX ? [`[more than ${String(ENTRIES_MAX)} entries; list a folder inside]`] : [];
    return [...lines, ...note].join('\n');
  },
});
