import { appNameOf, limits, MessageTemplate, MessageText } from '@concierge/contract';
import { z } from 'zod';
import { defineTool } from '../tool.ts';
import type { KeptMessage } from './turn-messaging.ts';

const appName = z.enum(['whatsapp', 'messenger', 'telegram', 'slack']).describe('The chat app.');

export const message = defineTool({
  name: 'message',
  domain: 'messaging',
  cs: 'never',
  description:
    'Sends a message to somebody on a connected chat app, outside this conversation: a customer, a colleague, a group. Use it only when the owner asked for it, or a task of theirs needs it; look the recipient up with contacts instead of guessing. Not for answering the person you are talking to: just answer. The result says what became of the message; never claim that it arrived when the result does not say so.',
  schema: z.strictObject({
    channel: appName,
    to: z
      .string()
      .min(1)
      .max(256)
      .describe(
        'Who: a phone number with country code (whatsapp), a page-scoped id (messenger), a numeric chat id (telegram), a user or conversation id (slack).',
      ),
    text: MessageText.describe(
      'What to say, in Markdown. Long texts are sent in several parts. With template: what the template says, for the record.',
    ),
    template: MessageTemplate.extend({
      name: MessageTemplate.shape.name.describe('Its name, as the owner has it at WhatsApp.'),
      language: MessageTemplate.shape.language.describe('Language it is approved in, such as en_US.'),
      variables: MessageTemplate.shape.variables.describe('For {{1}}, {{2}} … of its body, in order.'),
    })
      .optional()
      .describe(
        'whatsapp only: sends this approved template in place of text, which is all that may be sent more than 24 hours after the contact wrote. Ask the owner which there are; never make one up.',
      ),
  }),
  sideEffect: 'writes',
  run: async ({ channel, to, text, template }, { messaging, callId }) =>
    describeKept(await messaging.send({ app: channel, to, text, template }, callId), channel),
});

export const reply = defineTool({
  name: 'reply',
  domain: 'messaging',
  cs: 'full',
  description:
    'Adds a separate message to this conversation on a chat app, before or beside your answer: a note that something takes a while, or a part that should stand on its own. Your answer itself is delivered without it: do not call reply to answer. In web conversations there are no separate messages; there everything you write is shown as it comes.',
  schema: z.strictObject({ text: MessageText.describe('The message, in Markdown.') }),
  sideEffect: 'writes',
  run: async ({ text }, { messaging, callId }) => {
    const kept = await messaging.reply(text, callId);
    return describeKept(kept, appNameOf(kept.message.channel));
  },
});

/** What became of it, in words that leave no room for "it has arrived". */
function describeKept({ message, isNew, isPaused, window }: KeptMessage, app: string): string {
  const { id, to, template, expiresAt } = message;
  const what = template === undefined ? 'Message' : `Template "${template.name}"`;
  if (isPaused) {
    return `WITHHELD. ${what} ${id} for ${to} on ${app}: a person has this contact’s conversation (see handoff), so it is not sent, not later either. Send it again once the conversation is resumed, if it is still wanted.`;
  }
  const hours = String(limits.outboxTtlSeconds / 3600);
  return [
    `ON ITS WAY. ${what} ${id} for ${to} on ${app} ${isNew ? 'is accepted' : 'had been accepted by this same call'} and goes out after what was said there before, mostly within seconds.`,
    `Whether it arrives is not known yet: do not say that it has. It is dropped when the app does not take it by ${expiresAt} (${hours} hours).`,
    ...(window.state === 'open' ? [`Reply window: open until ${new Date(window.untilMs).toISOString()}.`] : []),
  ].join('\n');
}
