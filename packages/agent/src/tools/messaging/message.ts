import {
  messagingChannels,
  toAppName,
  AppName,
  appNames,
  appNamesWithTemplates,
  channelDefinitions,
  limits,
  MessageTemplate,
  MessageText,
  type ChannelView,
} from '@concierge/contract';
import { z } from 'zod';
import { defineTool } from '../tool.ts';
import { howToConnect, type KeptMessage } from './turn-messaging.ts';

export const message = defineTool({
  name: 'message',
  domain: 'messaging',
  cs: 'never',
  description:
    'Sends a message to somebody on a connected chat app, outside this conversation: a customer, a colleague, a group. Use it only when the owner asked for it, or a task of theirs needs it; look the recipient up with contacts instead of guessing. Not for answering the person you are talking to: just answer. The result says what became of the message; never claim that it arrived when the result does not say so.',
  schema: z.strictObject({
    channel: AppName.describe('The chat app.'),
    to: z
      .string()
      .min(1)
      .max(256)
      .describe(
        `Who: ${messagingChannels.map((channel) => `${channelDefinitions[channel].recipient.brief} (${toAppName(channel)})`).join(', ')}.`,
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
    return describeKept(kept, toAppName(kept.message.channel));
  },
});

export const channels = defineTool({
  name: 'channels',
  domain: 'messaging',
  cs: 'never',
  description: `Lists the chat apps (${appNames.join(', ')}): which are connected, whether they work, what came and went last, and how to connect one. It shows no credentials and cannot change anything.`,
  schema: z.strictObject({}),
  sideEffect: 'none',
  run: async (_input, { messaging }) => {
    const known = new Map((await messaging.channels()).map((view) => [view.channel, view]));
    const parts = messagingChannels.map((channel) => {
      const view = known.get(channel);
      const app = toAppName(channel);
      return view === undefined ? `${app}: not connected. ${howToConnect(app)}` : describeChannel(view);
    });
    return ['web: always there; people use it through the chat page and the API.', ...parts].join('\n\n');
  },
});

function describeChannel(view: ChannelView): string {
  const secrets = channelDefinitions[view.channel].secrets.map((name) => `${name} ${view.secrets[name] ?? 'missing'}`);
  const identifiers = Object.entries(view.identifiers).map(([name, value]) => `${name} ${value}`);
  return [
    `${view.app}: ${view.state}${view.reason === null ? '' : ` (${view.reason})`}`,
    `  settings: ${[...identifiers, ...secrets].join(', ')}`,
    `  connected ${view.createdAt ?? 'at an unknown time'}, last changed ${view.updatedAt ?? 'at an unknown time'}`,
    `  last message in: ${view.lastInboundAt ?? 'never'}; last message out: ${view.lastOutboundAt ?? 'never'}`,
    ...(view.lastError === null ? [] : [`  last error, ${view.lastError.at}: ${view.lastError.message} (${view.lastError.code})`]),
  ].join('\n');
}

/** Describes the outcome in words that do not claim that it has arrived. */
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
