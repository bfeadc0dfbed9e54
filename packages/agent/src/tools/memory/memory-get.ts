import { AppError } from '@concierge/contract';
import { z } from 'zod';
import { defineTool, ToolError } from '../tool.ts';
import type { ToolContext } from '../tool-context.ts';

const LISTED_MAX = 30;

export const memoryGet = defineTool({
  name: 'memory_get',
  description: 'Reads a kept note by its reference, as memory_write answered it.',
  schema: z.strictObject({ ref: z.string().min(1).max(512).describe('Reference of the note, as in "memory/opening-hours.md".') }),
  sideEffect: 'none',
  run: async ({ ref }, { memory }) => {
    try {
      const { text } = await memory.get(ref);
      return text.trim() === '' ? 'The note is empty.' : text;
    } catch (error) {
      if (error instanceof AppError && error.code === 'not_found') throw new ToolError(await whatThereIs(memory, ref), { cause: error });
      throw error;
    }
  },
});

async function whatThereIs(memory: ToolContext['memory'], ref: string): Promise<string> {
  const newest = (await memory.list()).toSorted((left, right) => right.mtimeMs - left.mtimeMs).slice(0, LISTED_MAX);
  const known = newest.length === 0 ? 'Nothing has been kept yet.' : `The newest are: ${newest.map(({ path }) => path).join(', ')}.`;
  return `There is no note "${ref}". ${known}`;
}
