import { clip, type SessionMessage, type SessionSummary, truncate, type UserMessage } from '@concierge/contract';
import { fairShare } from '../share-budget.ts';

const SUMMARY_MAX_CHARACTERS = 12_000;
const REQUEST_MAX_CHARACTERS = 8000;
/** How much of the messages is read for sentences; more would delay the turns beside this one. */
const READ_MAX_CHARACTERS = 200_000;
const SENTENCE_MAX_CHARACTERS = 300;
/** How many of the user's newest messages stay, whatever they contain. */
const NEWEST_MAX = 6;
const NEWEST_CHARACTERS = 240;
/** A sentence costs its line, too. */
const LINE_CHARACTERS = 24;
/** How much more a sentence counts by who wrote it. A summary of a model has been condensed already. */
const WEIGHT = { summary: 2, digest: 1, user: 1, assistant: 0.5 } as const;

const MARK = 'No model could summarise this part. These are sentences of it, word for word, the oldest first.';

interface Sentence {
  readonly line: string;
  readonly words: readonly string[];
  readonly weight: number;
}

/**
 * Builds what replaces `messages` when no model can summarise them: from the messages and the summary so far, the
 * sentences that carry most for their length (names, numbers, words that are rare in this conversation), the user's
 * last words, and which tools ran.
 */
export function extractiveDigest(previous: SessionSummary | null, messages: readonly SessionMessage[]): string {
  const newest = messages
    .filter((message) => message.role === 'user')
    .slice(-NEWEST_MAX)
    .map(({ text }) => `- ${clipMiddle(oneLine(text), NEWEST_CHARACTERS)}`);
  const rest = [...section('The user’s last messages', newest), ...section('Tool outcomes', toolLines(messages))].join('\n\n');
  const sentences = unique([...carriedOver(previous), ...readSentences(messages)]);
  const room = SUMMARY_MAX_CHARACTERS - MARK.length - rest.length - LINE_CHARACTERS;
  const kept = mostTelling(sentences, room).map(({ line }) => `- ${line}`);
  return [MARK, ...section('What was said', kept), ...(rest === '' ? [] : [rest])].join('\n\n');
}

/**
 * A summary with what must not be left to a summariser: the request being worked on, word for word, when its message
 * was cut off.
 */
export function withRequest(summary: string, request: Pick<UserMessage, 'text'> | undefined): string {
  const text = clip(summary, SUMMARY_MAX_CHARACTERS);
  if (request === undefined) return text;
  return `${text}\n\n## The request being worked on, word for word\n${clipMiddle(request.text, REQUEST_MAX_CHARACTERS)}`;
}

function section(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : [`## ${title}\n${lines.join('\n')}`];
}

function toolLines(messages: readonly SessionMessage[]): string[] {
  const tools = new Map<string, number>();
  for (const message of messages) if (message.role === 'tool') tools.set(message.name, (tools.get(message.name) ?? 0) + 1);
  return [...tools].map(([name, count]) => `- ${name} ran ${String(count)} times`);
}

function carriedOver(previous: SessionSummary | null): Sentence[] {
  if (previous === null) return [];
  const weight = previous.text.startsWith(MARK) ? WEIGHT.digest : WEIGHT.summary;
  return previous.text
    .split('\n')
    .filter((line) => line.trim() !== '' && line !== MARK && !line.startsWith('#'))
    .map((line) => readSentence(oneLine(line.replace(/^- /u, '')), weight));
}

function readSentences(messages: readonly SessionMessage[]): Sentence[] {
  const said = messages.filter((message) => message.role !== 'tool');
  const limit = fairShare(
    said.map(({ text }) => text.length),
    READ_MAX_CHARACTERS,
  );
  return said.flatMap((message) => {
    const label = message.role === 'user' ? '' : `${nameSpeaker(message)}: `;
    const pieces = sentenceSegmenter.segment(clipMiddle(message.text, limit));
    return [...pieces]
      .map(({ segment }) => readSentence(label + oneLine(segment), WEIGHT[message.role]))
      .filter(({ words }) => words.length > 0);
  });
}

const sentenceSegmenter = new Intl.Segmenter('und', { granularity: 'sentence' });

function readSentence(text: string, weight: number): Sentence {
  const line = clipMiddle(text, SENTENCE_MAX_CHARACTERS);
  return { line, words: [...new Set(line.match(/[\p{L}\p{N}]+/gu))], weight };
}

/** A repeated sentence is kept once, where it stood first. */
function unique(sentences: readonly Sentence[]): Sentence[] {
  return [...new Map(sentences.toReversed().map((sentence) => [sentence.line.toLowerCase(), sentence])).values()].toReversed();
}

/** Chooses as many sentences as there is room for, and keeps their order. */
function mostTelling(sentences: readonly Sentence[], room: number): Sentence[] {
  const counts = new Map<string, number>();
  for (const { words } of sentences) for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  const rarity = (word: string): number => Math.log(1 + sentences.length / (counts.get(word) ?? 1)) * weighWord(word);
  const ranked = sentences
    .map((sentence, position) => ({ sentence, position, worth: computeWorth(sentence, rarity) }))
    .toSorted((one, other) => other.worth - one.worth || one.position - other.position);
  let left = room;
  const chosen = ranked.filter(({ sentence }) => {
    const length = sentence.line.length + '- \n'.length;
    if (length > left) return false;
    left -= length;
    return true;
  });
  return chosen.toSorted((one, other) => one.position - other.position).map(({ sentence }) => sentence);
}

function computeWorth({ line, words, weight }: Sentence, rarity: (word: string) => number): number {
  return (weight * words.reduce((sum, word) => sum + rarity(word), 0)) / (line.length + LINE_CHARACTERS);
}

/** Numbers, codes and names are what a conversation is asked for later. */
function weighWord(word: string): number {
  if (/\p{N}/u.test(word)) return 2;
  return /^\p{Lu}/u.test(word) ? 1.5 : 1;
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/gu, ' ').trim();
}

/** A tool's result can be fetched again; a message cannot. */
const TOOL_MAX_CHARACTERS = 1500;
/** The shortest cut of a message that still carries meaning. */
const MESSAGE_MIN_CHARACTERS = 60;

/**
 * The messages as text for a summariser, in at most about `maxCharacters`: none left out, and where they do not all fit
 * the long ones keep their beginning and their end, in all the room that the short ones leave.
 */
export function transcript(messages: readonly SessionMessage[], maxCharacters: number): string {
  const labels = messages.map((message) => `[${nameSpeaker(message)}] `);
  const bodies = messages.map((message) =>
    message.role === 'tool' ? clipMiddle(writeBody(message), TOOL_MAX_CHARACTERS) : writeBody(message),
  );
  const taken = labels.reduce((sum, label) => sum + label.length + SEPARATOR.length, 0);
  const share = fairShare(
    bodies.map(({ length }) => length),
    maxCharacters - taken,
  );
  const limit = Math.max(MESSAGE_MIN_CHARACTERS, share);
  return bodies.map((body, index) => `${labels[index] ?? ''}${clipMiddle(body, limit)}`).join(SEPARATOR);
}

const SEPARATOR = '\n\n';

function nameSpeaker(message: SessionMessage): string {
  if (message.role === 'tool') return `result of ${message.name}${message.isError ? ', failed' : ''}`;
  return message.role === 'assistant' && message.by !== undefined ? "a person in the assistant's place" : message.role;
}

function writeBody(message: SessionMessage): string {
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
function clipMiddle(text: string, maxCharacters: number): string {
  if (text.length <= maxCharacters) return text;
  const room = Math.max(0, maxCharacters - MIDDLE_NOTE_CHARACTERS);
  const head = truncate(text, Math.ceil(room / 2));
  const tail = text.slice(text.length - Math.floor(room / 2)).replace(/^[\uDC00-\uDFFF]/u, '');
  return `${head} [… ${String(text.length - head.length - tail.length)} left out …] ${tail}`;
}

/** As long as `clipMiddle` writes it for most texts. */
const MIDDLE_NOTE_CHARACTERS = 24;
