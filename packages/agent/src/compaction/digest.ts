import type { SessionMessage, SessionSummary } from '@concierge/contract';
import { clip } from '../tools/cut-text.ts';

const ASKED_MAX = 40;
const ASKED_CHARACTERS = 240;
const SUMMARY_MAX_CHARACTERS = 12_000;
const REQUEST_MAX_CHARACTERS = 8000;
const MESSAGE_CHARACTERS = { user: 4000, assistant: 4000, tool: 1500 } as const;

/** What stands for `messages` when no model can summarise them: the user's own words, shortened, and which tools ran. */
export function extractiveDigest(previous: SessionSummary | null, messages: readonly SessionMessage[]): string {
  const asked = messages.filter((message) => message.role === 'user').slice(-ASKED_MAX);
  const tools = new Map<string, number>();
  for (const message of messages) if (message.role === 'tool') tools.set(message.name, (tools.get(message.name) ?? 0) + 1);
  const parts = [
    ...(previous === null ? [] : [clip(previous.text, SUMMARY_MAX_CHARACTERS / 2)]),
    `## What the user said\n${asked.map((message) => `- ${clip(oneLine(message.text), ASKED_CHARACTERS)}`).join('\n')}`,
    ...(tools.size === 0
      ? []
      : [`## Tool outcomes\n${[...tools].map(([name, count]) => `- ${name} ran ${String(count)} times`).join('\n')}`]),
  ];
  return clip(parts.join('\n\n'), SUMMARY_MAX_CHARACTERS);
}

/** A summary with what must not be left to a summariser: the request being worked on, word for word, when its message was cut off. */
export function withRequest(summary: string, cutOff: readonly SessionMessage[], turnId: string): string {
  const request = cutOff.find((message) => message.role === 'user' && message.turnId === turnId);
  const text = clip(summary, SUMMARY_MAX_CHARACTERS);
  if (request?.role !== 'user') return text;
  return `${text}\n\n## The request being worked on, word for word\n${clip(request.text, REQUEST_MAX_CHARACTERS)}`;
}

/** The messages as text for a summariser, in at most about `maxCharacters`: every message shortened alike, none left out. */
export function transcript(messages: readonly SessionMessage[], maxCharacters: number): string {
  const share = Math.max(120, Math.floor(maxCharacters / Math.max(1, messages.length)));
  const whole = render(messages, (role) => MESSAGE_CHARACTERS[role]);
  return whole.length <= maxCharacters ? whole : render(messages, (role) => Math.min(share, MESSAGE_CHARACTERS[role]));
}

function render(messages: readonly SessionMessage[], limitOf: (role: SessionMessage['role']) => number): string {
  return messages.map((message) => `[${speaker(message)}] ${clip(body(message), limitOf(message.role))}`).join('\n\n');
}

function speaker(message: SessionMessage): string {
  if (message.role === 'tool') return `result of ${message.name}${message.isError ? ', failed' : ''}`;
  return message.role === 'assistant' && message.by !== undefined ? "a person in the assistant's place" : message.role;
}

function body(message: SessionMessage): string {
  switch (message.role) {
    case 'user':
      return message.text + (message.attachments?.map((upload) => ` [attached: ${upload.name}]`).join('') ?? '');
    case 'assistant':
      return [message.text, ...(message.toolCalls ?? []).map((call) => `(calls ${call.name} ${call.arguments})`)].join(' ').trim();
    case 'tool':
      return message.output;
  }
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/gu, ' ').trim();
}
