import { z } from 'zod';
import { defineTool } from '../tool.ts';

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
  run: async ({ text, title }, { memory }) => {
    const { ref } = await memory.write({ text, title });
    return `Kept as ${ref}.`;
  },
});
