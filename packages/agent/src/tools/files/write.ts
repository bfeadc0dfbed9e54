import { z } from 'zod';
import { defineTool } from '../tool.ts';

export const write = defineTool({
  name: 'write',
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
