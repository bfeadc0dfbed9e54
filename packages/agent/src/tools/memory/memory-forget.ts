import { AppError } from '@concierge/contract';
import { z } from 'zod';
import { defineTool, ToolError } from '../tool.ts';
import { unknownNote } from './unknown-note.ts';

export const memoryForget = defineTool({
  name: 'memory_forget',
  description:
    'Removes a kept note for good, with everything in it. Only when the owner wants it gone, or when it is wrong and its right version is kept elsewhere; to correct a part of a note use edit. Conversations are not removed here: the owner deletes them.',
  schema: z.strictObject({
    ref: z.string().min(1).max(512).describe('Reference of the note, as memory_write and memory_search give it: "memory/old-prices.md".'),
  }),
  sideEffect: 'writes',
  run: async ({ ref }, { memory }) => {
    if (ref === 'MEMORY.md') {
      throw new ToolError('MEMORY.md holds many matters and is not removed as a whole. Take out what is to be forgotten with edit.');
    }
    try {
      await memory.forget(ref);
    } catch (error) {
      if (error instanceof AppError && error.code === 'not_found') throw await unknownNote(memory, ref, error);
      throw error;
    }
    return `Removed ${ref}.`;
  },
});
