import {
  appChannels,
  appNameOf,
  AppName,
  appNamesWithTemplates,
  channelDefinitions,
  MessageTemplate,
  MessageText,
} from '@concierge/contract';
import { z } from 'zod';
import { defineTool } from '../tool.ts';
import { describeKept } from './describe-kept.ts';

export const message = defineTool({
  name: 'message',
  description:
    'Sends a message to somebody on a connected chat app, outside this conversation: a customer, a colleague, a group. Use it only when the owner asked for it, or a task of theirs needs it; look the recipient up with contacts instead of guessing. Not for answering the person you are talking to: just answer. The result says what became of the message; never claim that it arrived when the result does not say so.',
  schema: z.strictObject({
    channel: AppName.describe('The chat app.'),
    to: z
      .string()
      .min(1)
      .max(256)
      .describe(
        `Who: ${appChannels.map((channel) => `${channelDefinitions[channel].recipient.brief} (${appNameOf(channel)})`).join(', ')}.`,
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
        `${appNamesWithTemplates.join(', ')} only: sends this approved template in place of text, which is all that may be sent more than 24 hours after the contact wrote. Ask the owner which there are; never make one up.`,
      ),
  }),
  sideEffect: 'writes',
  run: async ({ channel, to, text, template }, { messaging, callId }) =>
    describeKept(await messaging.send({ app: channel, to, text, template }, callId), channel),
});
