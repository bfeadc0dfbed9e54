import { AppError } from '@concierge/contract';
import { z } from 'zod';
import type { ToolAccess } from '../tool-access.ts';
import { defineTool, ToolError } from '../tool.ts';

const TEXT_MAX_CHARACTERS = 20_000;

export const memoryWrite = defineTool({
  name: 'memory_write',
  description:
    'Keeps a note for later conversations: a fact, a preference, a decision, something promised. One matter per note, in whole sentences that make sense without this conversation. Answers with the reference of the note.',
  narrowDescription:
    'Keeps a note about the person you are talking to for later conversations with that person: a fact, a preference, something promised. One matter per note, in whole sentences. Answers with the reference of the note.',
  schema: z.strictObject({
    text: z.string().min(1).max(TEXT_MAX_CHARACTERS).describe('The note.'),
    title: z
      .string()
      .min(1)
      .max(120)
      .optional()
      .describe(
        'A few words that say what the note is about; notes with the same title are kept together. Without it the note is part of every later prompt: only for what matters always.',
      ),
  }),
  sideEffect: 'writes',
  run: async ({ text, title }, { memory, access }) => {
    try {
      const { ref } = await memory.write({ text, title });
      return `Kept as ${ref}.`;
    } catch (error) {
      if (error instanceof AppError && error.code === 'memory_quota') throw new ToolError(quotaMessage(error, access), { cause: error });
      if (error instanceof AppError && error.code === 'too_large') {
        throw new ToolError('The note of this title is full. Keep it under another title.', { cause: error });
      }
      throw error;
    }
  },
});

/** What a customer has no use for is left out of what cs may repeat. */
function quotaMessage({ message }: AppError, access: ToolAccess): string {
  if (access === 'cs')
    return 'Nothing was kept: there is no room for more notes. Go on without the note, and do not promise to remember it.';
  return `Nothing was kept. ${message} Tell the owner; memory_forget and shorter notes make room, and the limit is part of the plan.`;
}
