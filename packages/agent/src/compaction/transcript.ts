import { truncate, type SessionMessage } from '@concierge/contract';
import { fairShare } from '../share-budget.ts';

/** A tool's result can be fetched again; a message cannot. */
const TOOL_MAX_CHARACTERS = 1500;
/** The shortest cut of a message that still carries meaning. */
const MESSAGE_MIN_CHARACTERS = 60;

/**
 * The messages as text for a summariser, in at most about `maxCharacters`: none left out, and where they do not all fit
 * the long ones keep their beginning and their end, in all the room that the short ones leave.
 */
export function transcript(messages: readonly SessionMessage[], maxCharacters: number): string {
  const labels = messages.map((message) => `[${speakerOf(message)}] `);
  const bodies = messages.map((message) => (message.role === 'tool' ? clipMiddle(bodyOf(message), TOOL_MAX_CHARACTERS) : bodyOf(message)));
  const taken = labels.reduce((sum, label) => sum + label.length + SEPARATOR.length, 0);
  const share = fairShare(
    bodies.map(({ length }) => length),
    maxCharacters - taken,
  );
  const limit = Math.max(MESSAGE_MIN_CHARACTERS, share);
  return bodies.map((body, index) => `${labels[index] ?? ''}${clipMiddle(body, limit)}`).join(SEPARATOR);
}

const SEPARATOR = '\n\n';

export function speakerOf(message: SessionMessage): string {
  if (message.role === 'tool') return `result of ${message.name}${message.isError ? ', failed' : ''}`;
  return message.role === 'assistant' && message.by !== undefined ? "a person in the assistant's place" : message.role;
}

function bodyOf(message: SessionMessage): string {
  switch (message.role) {
    case 'user':
      return message.text + (message.attachments?.map((upload) => ` [attached: ${upload.name}]`).join('') ?? '');
    case 'assistant':
      return [message.text, ...(message.toolCalls ?? []).map((call) => `(calls ${call.name} ${call.arguments})`)].join(' ').trim();
    case 'tool':
      return message.output;
  }
}

/**
 * The beginning and the end of `text` in about `maxCharacters` UTF-16 units, pairs kept whole; a note between them
 * names how much is missing.
 */
export function clipMiddle(text: string, maxCharacters: number): string {
  if (text.length <= maxCharacters) return text;
  const room = Math.max(0, maxCharacters - MIDDLE_NOTE_CHARACTERS);
  const head = truncate(text, Math.ceil(room / 2));
  const tail = text.slice(text.length - Math.floor(room / 2)).replace(/^[\uDC00-\uDFFF]/u, '');
  return `${head} [… ${String(text.length - head.length - tail.length)} left out …] ${tail}`;
}

/** As long as `clipMiddle` writes it for most texts. */
const MIDDLE_NOTE_CHARACTERS = 24;
