import { appNameOf, MessageText } from '@concierge/contract';
import { z } from 'zod';
import { defineTool } from '../tool.ts';
import { describeKept } from './describe-kept.ts';

export const reply = defineTool({
  name: 'reply',
  description:
    'Adds a separate message to this conversation on a chat app, before or beside your answer: a note that something takes a while, or a part that should stand on its own. Your answer itself is delivered without it: do not call reply to answer. In web conversations there are no separate messages; there everything you write is shown as it comes.',
  schema: z.strictObject({ text: MessageText.describe('The message, in Markdown.') }),
  sideEffect: 'writes',
  run: async ({ text }, { messaging, callId }) => {
    const kept = await messaging.reply(text, callId);
    return describeKept(kept, appNameOf(kept.message.channel));
  },
});
