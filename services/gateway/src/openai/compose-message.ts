import { AppError, codePoints, limits } from '@concierge/contract';
import { toLines, type GivenFile, type Line, type Piece, type ReceivedMessage } from './openai-messages.ts';

export interface NamedFile {
  readonly file: GivenFile;
  readonly name: string;
}

export interface ComposedMessage {
  /** The new message. */
  readonly text: string;
  /** What goes before it, each part under a label. */
  readonly preface?: string;
  readonly files: readonly NamedFile[];
  /** How many of them, counted from the end, came with the new message. */
  readonly newFiles: number;
}

export interface ComposeOptions {
  /** The service keeps the conversation: earlier messages are known. */
  readonly continues: boolean;
  /** The field of the request that holds the messages. */
  readonly param: 'messages' | 'input';
}

const speakers = { user: 'User', assistant: 'Assistant', tool: 'Tool' } as const;

/**
 * Takes the new message out of what a caller sends each time, and what the agent reads before it: the application's
 * instructions, and the messages before, unless they are known. These may be as long as they like; the model decides
 * what it takes.
 * @throws AppError `invalid_request`
 */
export function composeMessage(said: readonly ReceivedMessage[], { continues, param }: ComposeOptions): ComposedMessage {
  const { before, question } = splitMessages(said, param);
  const earlier = continues ? [] : before;
  const newFiles = question.filter((piece) => typeof piece !== 'string').length;
  if (newFiles > limits.attachmentsMax)
    throw refused(param, `has more than ${String(limits.attachmentsMax)} images and files in its new message`);
  const files = new FileNames([...earlier.flatMap(({ pieces }) => pieces), ...question]);
  const sections = [
    section('Instructions of the application that asks', joinTexts(said.filter(({ role }) => role === 'instructions'))),
    section('The conversation so far, as the application tells it', joinLines(earlier, files)),
  ].filter((part) => part !== null);
  const text = questionText(question, files);
  if (text === '') throw refused(param, 'must end with a message of the user that is not empty');
  refuseLong(text, param);
  return { text, ...(sections.length > 0 && { preface: sections.join('\n\n') }), files: files.kept, newFiles };
}

interface SplitMessages {
  readonly before: readonly Line[];
  readonly question: readonly Piece[];
}

/**
 * The new message is all that the user wrote after the last answer.
 * @throws AppError `invalid_request` when there is none
 */
function splitMessages(said: readonly ReceivedMessage[], param: string): SplitMessages {
  const lines = toLines(said);
  const last = lines.findLastIndex(({ role }) => role !== 'user');
  const question = lines.slice(last + 1).map(({ pieces }) => pieces);
  if (question.length > 0) return { before: lines.slice(0, last + 1), question: question.flat() };
  const hint = lines.at(-1)?.role === 'tool' ? ': agents answer their own tool calls' : '';
  throw new AppError('invalid_request', undefined, { errors: [{ path: param, message: `must end with a message of the user${hint}` }] });
}

function questionText(question: readonly Piece[], files: FileNames): string {
  const texts = question.filter((piece) => typeof piece === 'string').filter((text) => text !== '');
  return (texts.length > 0 ? texts : question.map((piece) => files.show(piece))).join('\n');
}

function joinTexts(said: readonly ReceivedMessage[]): string {
  const texts = said.flatMap(({ pieces }) => pieces).filter((piece) => typeof piece === 'string');
  return texts.filter((text) => text !== '').join('\n\n');
}

function joinLines(lines: readonly Line[], files: FileNames): string {
  return lines
    .map(({ role, pieces }) => ({ speaker: speakers[role], text: pieces.map((piece) => files.show(piece)).join('\n') }))
    .filter(({ text }) => text !== '')
    .map(({ speaker, text }) => `${speaker}: ${text}`)
    .join('\n\n');
}

function section(label: string, text: string): string | null {
  return text === '' ? null : `[${label}]\n${text}`;
}

function refuseLong(text: string, param: string): void {
  const length = codePoints(text);
  if (length <= limits.messageMaxCharacters) return;
  throw refused(param, `has a new message of ${String(length)} characters: at most ${String(limits.messageMaxCharacters)} are taken`);
}

/** Names the files of a request in their order; of too many the newest are kept. */
class FileNames {
  readonly #names = new Map<GivenFile, string>();
  readonly kept: readonly NamedFile[];

  constructor(pieces: readonly Piece[]) {
    const files = pieces.filter((piece) => typeof piece !== 'string');
    for (const [index, file] of files.entries()) this.#names.set(file, file.name ?? `${file.kind}-${String(index + 1)}`);
    this.kept = files.slice(-limits.attachmentsMax).map((file) => ({ file, name: this.#findName(file) }));
  }

  /** A piece as a transcript shows it. */
  show(piece: Piece): string {
    if (typeof piece === 'string') return piece;
    const isKept = this.kept.some(({ file }) => file === piece);
    return isKept ? `[${this.#findName(piece)}]` : `[${this.#findName(piece)}, no longer attached]`;
  }

  #findName(file: GivenFile): string {
    return this.#names.get(file) ?? file.kind;
  }
}

function refused(path: string, message: string): AppError {
  return new AppError('invalid_request', undefined, { errors: [{ path, message }] });
}
