import { AgentName, clip, ContactId, type SessionView, type UsageRow } from '@concierge/contract';
import { rankTexts, readQuestion, cutSnippet } from '@concierge/tenant';
import { z } from 'zod';
import { defineTool, ToolError } from '../tool.ts';
import type { ToolContext } from '../tool-context.ts';

const MESSAGES_DEFAULT = 30;
const MESSAGE_MAX_CHARACTERS = 3000;
const RESULT_MAX_CHARACTERS = 500;
const FOUND_DEFAULT = 10;
/** The searched part of a tool's result: whole files and pages would outweigh the messages. */
const SEARCHED_RESULT_MAX_CHARACTERS = 4000;

export const sessionsList = defineTool({
  name: 'sessions_list',
  domain: 'sessions',
  cs: 'never',
  description:
    'Lists the newest conversations of this workspace, with all agents and contacts: id, last change, agent, channel, messages, title. Read one with session_history.',
  schema: z.strictObject({
    limit: z.int().min(1).max(100).optional().describe('Default 20.'),
    agent: AgentName.optional().describe('Only those of one agent, such as "admin" or "cs".'),
  }),
  sideEffect: 'none',
  run: async ({ limit = 20, agent }, { sessions }) => {
    const items = await sessions.list({ limit, agent });
    if (items.length === 0) return 'There are no conversations yet.';
    return items
      .map((item) => `${item.id}  ${item.updatedAt}  ${item.agent}  ${item.channel}  ${String(item.messageCount)} messages  ${item.title}`)
      .join('\n');
  },
});

const limit = z
  .int()
  .min(1)
  .max(200)
  .optional()
  .describe(
    `Messages at most: counted from the end (default ${String(MESSAGES_DEFAULT)}), or with query the best (default ${String(FOUND_DEFAULT)}).`,
  );
const before = z.int().min(1).max(10_000_000).optional().describe('Only messages before this number, to page back.');
const query = z
  .string()
  .trim()
  .min(1)
  .max(1000)
  .optional()
  .describe('Words to look for: answers with the messages that fit best, cut, instead of the last ones.');

export const sessionHistory = defineTool({
  name: 'session_history',
  domain: 'sessions',
  cs: 'narrow',
  description:
    'Reads a conversation, this one or another, messages that were summarised included; with query, finds the messages in it that are about something. Tool results are shortened. To look through all conversations at once use memory_search.',
  narrowDescription:
    'Reads this conversation, messages that were summarised included; with query, finds the messages in it that are about something. Tool results are shortened. Earlier conversations with the same person are found by memory_search.',
  schema: z.strictObject({
    session_id: ContactId.optional().describe('From sessions_list. Default: this conversation.'),
    query,
    limit,
    before,
  }),
  sideEffect: 'none',
  run: async (input, { sessions, sessionId }) => {
    const id = input.session_id ?? sessionId;
    const session = await sessions.history(id);
    if (session === undefined)
      throw new ToolError(id === sessionId ? 'This conversation has no finished messages yet.' : `There is no conversation ${id}.`);
    if (input.query !== undefined)
      return renderFound(session, { query: input.query, count: input.limit ?? FOUND_DEFAULT, before: input.before });
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

/** In the order of the conversation, so that they read as one. */
function renderFound(
  { title, messages }: SessionView,
  { query: asked, count, before: beforeNumber = messages.length + 1 }: { query: string; count: number; before: number | undefined },
): string {
  const texts = messages
    .slice(0, beforeNumber - 1)
    .map((message) => (message.role === 'tool' ? clip(message.output, SEARCHED_RESULT_MAX_CHARACTERS) : message.text));
  const found = rankTexts(asked, texts);
  if (found.length === 0) return `Nothing in this conversation is about "${asked}". Try other words, or fewer.`;
  const question = readQuestion(asked);
  const lines = found
    .slice(0, count)
    .toSorted((one, other) => one - other)
    .map((index) => `#${String(index + 1)} ${nameSpeaker(messages[index])}\n${cutSnippet(texts[index] ?? '', question)}`);
  const rest = found.length > count ? `\n\n[${String(found.length - count)} further messages fit less]` : '';
  return `${title}\n\n${lines.join('\n\n')}${rest}\n\n[cut; read around a message with before, as in before ${String((found[0] ?? 0) + 4)} and limit 6]`;
}

function nameSpeaker(message: SessionView['messages'][number] | undefined): string {
  if (message === undefined) return '';
  return message.role === 'tool' ? `result of ${message.name}` : `${message.role}, ${message.at}`;
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

const PERCENT = 100;

export const status = defineTool({
  name: 'status',
  domain: 'sessions',
  cs: 'narrow',
  description:
    'Tells about this conversation and turn: current time, agent, channel, model, how full the context is, what this turn has used so far, and what the whole workspace has used today.',
  narrowDescription: 'Tells about this conversation: current time, channel, and how full the context is.',
  schema: z.strictObject({}),
  sideEffect: 'none',
  run: async (_input, context) => {
    const now = context.status();
    const { turn } = now;
    const fill = Math.round((now.contextTokens / now.contextWindow) * PERCENT);
    const lines = [
      `Time: ${now.time}`,
      `Agent: ${now.agent}, on channel ${now.channel}`,
      `Session: ${now.sessionId}, ${String(now.messages)} messages${now.compacted ? ', the oldest of them summarised' : ''}`,
      `Context: about ${String(now.contextTokens)} of ${String(now.contextWindow)} tokens (${String(fill)} %)`,
    ];
    // What things cost, and on which model, is the owner's business and not a customer's.
    if (context.access === 'cs') return lines.join('\n');
    lines.push(
      `Model: ${now.model}`,
      `This turn: ${String(turn.modelCalls)} of ${String(turn.maxTurns)} model calls, ${String(turn.inputTokens)} input and ${String(turn.outputTokens)} output tokens`,
      `Workspace today (UTC), turns that have ended: ${await usageOfToday(context)}`,
    );
    return lines.join('\n');
  },
});

async function usageOfToday({ usageToday }: Pick<ToolContext, 'usageToday'>): Promise<string> {
  // The index may be away; everything else here is known without it.
  const rows = await usageToday?.().catch(() => undefined);
  return rows === undefined ? 'not known at the moment' : describe(rows);
}

function describe(rows: readonly UsageRow[]): string {
  if (rows.length === 0) return 'none yet';
  const sum = (pick: (row: UsageRow) => number): string => String(rows.reduce((total, row) => total + pick(row), 0));
  const priced = rows.filter((row) => row.costUsd !== null);
  const cost = priced.length === 0 ? '' : `, ${priced.reduce((total, row) => total + (row.costUsd ?? 0), 0).toFixed(4)} US dollars`;
  return `${sum((row) => row.calls)} model calls, ${sum((row) => row.inputTokens)} input and ${sum((row) => row.outputTokens)} output tokens${cost}`;
}
