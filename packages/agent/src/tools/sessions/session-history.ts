import { ContactId, type SessionView } from '@concierge/contract';
import { z } from 'zod';
import { clip } from '../cut-text.ts';
import { defineTool, ToolError } from '../tool.ts';

const MESSAGES_DEFAULT = 30;
const MESSAGE_MAX_CHARACTERS = 3000;
const RESULT_MAX_CHARACTERS = 500;

const limit = z
  .int()
  .min(1)
  .max(200)
  .optional()
  .describe(`Messages to read at most, counted from the end. Default ${String(MESSAGES_DEFAULT)}.`);
const before = z.int().min(1).max(10_000_000).optional().describe('Only messages before this number, to page back.');

export const sessionHistory = defineTool({
  name: 'session_history',
  description: 'Reads a conversation, this one or another, messages that were summarised included. Tool results are shortened.',
  narrowDescription: 'Reads this conversation, messages that were summarised included. Tool results are shortened.',
  schema: z.strictObject({
    session_id: ContactId.optional().describe('From sessions_list. Default: this conversation.'),
    limit,
    before,
  }),
  sideEffect: 'none',
  run: async (input, { sessions, sessionId }) => {
    const id = input.session_id ?? sessionId;
    const session = await sessions.history(id);
    if (session === undefined)
      throw new ToolError(id === sessionId ? 'This conversation has no finished messages yet.' : `There is no conversation ${id}.`);
    return render(session, input.limit ?? MESSAGES_DEFAULT, input.before);
  },
});

function render({ title, messages }: SessionView, count: number, beforeNumber = messages.length + 1): string {
  const end = Math.min(messages.length, beforeNumber - 1);
  const start = Math.max(0, end - count);
  const lines = messages.slice(start, end).map((message, index) => `#${String(start + index + 1)} ${renderMessage(message)}`);
  const note = start > 0 ? `\n\n[${String(start)} earlier messages; page back with before ${String(start + 1)}]` : '';
  return `${title}\n\n${lines.join('\n\n')}${note}`;
}

function renderMessage(message: SessionView['messages'][number]): string {
  switch (message.role) {
    case 'user':
      return `user, ${message.at}\n${clip(message.text, MESSAGE_MAX_CHARACTERS)}`;
    case 'assistant': {
      const calls = message.toolCalls?.map((call) => `\n(called ${call.name})`).join('') ?? '';
      return `assistant, ${message.at}\n${clip(message.text, MESSAGE_MAX_CHARACTERS)}${calls}`;
    }
    case 'tool':
      return `result of ${message.name}${message.isError ? ', failed' : ''}\n${clip(message.output, RESULT_MAX_CHARACTERS)}`;
  }
}
