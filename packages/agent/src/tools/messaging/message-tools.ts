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
  actorName,
  ContactId,
  HandoffReason,
  type HandoffView,
} from '@concierge/contract';
import { z } from 'zod';
import { defineTool, ToolError } from '../tool.ts';
import { howToConnect, type KeptMessage } from './turn-messaging.ts';
import type { ToolContext } from '../tool-context.ts';

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

export const handoff = defineTool({
  name: 'handoff',
  domain: 'messaging',
  cs: 'full',
  description:
    'Hands a contact’s conversation over to a person, and gives it back. request: from now on a person is to answer there, not the agent, with a reason they can act on; the owner is told, and nothing that an agent writes reaches the contact until it is given back. status: who has it, and all that wait for a person. resume: the agent answers again; only when the owner wants that. request and resume need session_id.',
  narrowDescription:
    'Asks for a person to take this conversation over. Use request when the contact asks for a human, is upset, or needs what you cannot or must not do; try to help first when you can. On a chat app nothing that you write after request reaches the contact, your answer to this message included: what they should know, such as that a person will answer, you say before, with reply. In a web conversation you say it in your answer. status tells whether a person has it. You cannot take it back yourself.',
  schema: z.strictObject({
    action: z.enum(['request', 'status', 'resume']).describe('What to do.'),
    reason: HandoffReason.optional().describe('For request: what the person should know and do, in a sentence or two.'),
    hours: z
      .number()
      .positive()
      .max(limits.handoffMaxHours)
      .optional()
      .describe(
        'For request: the agent goes on by itself after so many hours. Default: as the owner has set it, else only when somebody resumes.',
      ),
    session_id: ContactId.optional().describe('Another conversation, from sessions_list or contacts. For status the default is this one.'),
  }),
  sideEffect: 'writes',
  run: async (input, context) => {
    switch (input.action) {
      case 'request':
        return request(input, context);
      case 'status':
        return status(input.session_id, context);
      case 'resume':
        return resume(input.session_id, context);
    }
  },
});

interface Wish {
  readonly reason?: string | undefined;
  readonly hours?: number | undefined;
  readonly session_id?: string | undefined;
}

async function request({ reason, hours, session_id: sessionId }: Wish, { messaging }: ToolContext): Promise<string> {
  if (reason === undefined) throw new ToolError('request needs reason: what the person should know and do.');
  const { view, isNew } = await messaging.requestHandoff({ reason, hours }, sessionId);
  return [
    isNew ? 'A person is asked for.' : 'A person had been asked for already.',
    describe(view),
    'The owner is told, and sees the conversation in their list. From here on nothing that an agent writes is sent to the contact on a chat app; in a web conversation the answer to the present message is the last they read of you, so say briefly that a person will answer, and promise no time.',
    'Stop working on the matter.',
  ].join('\n');
}

async function status(sessionId: string | undefined, { messaging, access }: ToolContext): Promise<string> {
  const view = await messaging.findHandoff(sessionId);
  const here = view === undefined ? 'No person has been asked for in this conversation: the agent answers.' : describe(view);
  if (access === 'cs' || sessionId !== undefined) return here;
  const { handoffs, broken } = await messaging.pausedHandoffs();
  const waiting = handoffs.length === 0 ? ['No conversation waits for a person.'] : ['Waiting for a person:', ...handoffs.map(describe)];
  const damaged = broken.map((id) => `Conversation ${id} is paused, and the file that says why is damaged; resume clears it.`);
  return [here, ...waiting, ...damaged].join('\n');
}

async function resume(sessionId: string | undefined, { messaging }: ToolContext): Promise<string> {
  const outcome = await messaging.resumeHandoff(sessionId);
  return outcome === 'resumed'
    ? 'The conversation is resumed: the agent answers there again.'
    : 'That conversation is not paused; nothing to resume.';
}

function describe({ sessionId, state, reason, requestedBy, since, until, resumedBy, resumedAt }: HandoffView): string {
  const facts = `Conversation ${sessionId}: ${state}; asked for by ${actorName(requestedBy)} at ${since}: ${reason}`;
  switch (state) {
    case 'paused':
      return until === null ? facts : `${facts} (until ${until})`;
    case 'expired':
      return `${facts} (its time was over at ${until ?? 'some time'})`;
    case 'resumed':
      return `${facts} (resumed by ${resumedBy === null ? 'somebody' : actorName(resumedBy)} at ${resumedAt ?? 'some time'})`;
  }
}
