import { z } from 'zod';
import { pageArguments, pageOf } from '../page-lines.ts';
import { defineTool } from '../tool.ts';

const PAGING = `Lines come numbered ("12\tthe text"); the numbers are not part of the file. Long files come in pages: continue with offset.`;

export const read = defineTool({
  name: 'read',
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
    return pageOf(text, { name: path, offset, limit }) + note;
  },
});
