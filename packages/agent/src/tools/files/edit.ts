import { z } from 'zod';
import { replaceOnce } from '../replace-once.ts';
import { defineTool } from '../tool.ts';

export const edit = defineTool({
  name: 'edit',
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
