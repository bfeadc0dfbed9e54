import { AppError, codePoints, limits } from '@concierge/contract';
import type { GivenFile, Piece, Said } from './said.ts';

export interface NamedFile {
  readonly file: GivenFile;
  readonly name: string;
}

export interface ComposedMessage {
  readonly text: string;
  readonly files: readonly NamedFile[];
}

export interface ComposeOptions {
  /** The conversation is kept on our side: what was said before is known. */
  readonly continues: boolean;
  /** The field of the request that holds what was said. */
  readonly param: 'messages' | 'input';
}

const speakers = { user: 'User', assistant: 'Assistant', tool: 'Tool' } as const;

/**
 * One message for the agent out of what a caller sends each time: the application's instructions, what was said before (unless it is
 * known) and the new message, each under a label. Without the first two it is the new message and nothing else.
 * @throws AppError `invalid_request`
 */
export function composeMessage(said: readonly Said[], { continues, param }: ComposeOptions): ComposedMessage {
  const { before, question } = split(said, param);
  const told = continues ? [] : before;
  if (question.filter((piece) => typeof piece !== 'string').length > limits.attachmentsMax)
    throw refused(param, `has more than ${String(limits.attachmentsMax)} images and files in its new message`);
  const files = new FileNames([...told.flatMap(({ pieces }) => pieces), ...question]);
  const sections = [
    section('Instructions of the application that asks', textsOf(said.filter(({ role }) => role === 'instructions'))),
    section('The conversation so far, as the application tells it', linesOf(told, files)),
  ].filter((part) => part !== null);
  const text = questionText(question, files);
  if (text === '') throw refused(param, 'must end with a message of the user that is not empty');
  const whole = sections.length === 0 ? text : [...sections, `[New message]\n${text}`].join('\n\n');
  refuseLong(whole, { param, isHistory: told.length > 0 });
  return { text: whole, files: files.kept };
}

type Line = Said & { readonly role: keyof typeof speakers };

/** The new message is all that the user said after the last answer. */
function split(said: readonly Said[], param: string): { readonly before: readonly Line[]; readonly question: readonly Piece[] } {
  const lines = said.filter((entry): entry is Line => entry.role !== 'instructions');
  const last = lines.findLastIndex(({ role }) => role !== 'user');
  const question = lines.slice(last + 1).map(({ pieces }) => pieces);
  if (question.length > 0) return { before: lines.slice(0, last + 1), question: question.flat() };
  const hint = lines.at(-1)?.role === 'tool' ? ': agents answer their own tool calls' : '';
  throw refused(param, `must end with a message of the user${hint}`);
}

function questionText(question: readonly Piece[], files: FileNames): string {
  const texts = question.filter((piece) => typeof piece === 'string').filter((text) => text !== '');
  return (texts.length > 0 ? texts : question.map((piece) => files.show(piece))).join('\n');
}

function textsOf(said: readonly Said[]): string {
  const texts = said.flatMap(({ pieces }) => pieces).filter((piece) => typeof piece === 'string');
  return texts.filter((text) => text !== '').join('\n\n');
}

function linesOf(lines: readonly Line[], files: FileNames): string {
  return lines
    .map(({ role, pieces }) => ({ speaker: speakers[role], text: pieces.map((piece) => files.show(piece)).join('\n') }))
    .filter(({ text }) => text !== '')
    .map(({ speaker, text }) => `${speaker}: ${text}`)
    .join('\n\n');
}

function section(label: string, text: string): string | null {
  return text === '' ? null : `[${label}]\n${text}`;
}

function refuseLong(text: string, { param, isHistory }: { readonly param: string; readonly isHistory: boolean }): void {
  const length = codePoints(text);
  if (length <= limits.messageMaxCharacters) return;
  const hint = isHistory ? '; give `conversation` or `user`, and what was said before is kept here' : '';
  const most = String(limits.messageMaxCharacters);
  throw refused(param, `is ${String(length)} characters long with its labels: at most ${most} are taken${hint}`);
}

/** Names the files of a request in their order; of too many the newest are kept. */
class FileNames {
  readonly #names = new Map<GivenFile, string>();
  readonly kept: readonly NamedFile[];

  constructor(pieces: readonly Piece[]) {
    const files = pieces.filter((piece) => typeof piece !== 'string');
    for (const [index, file] of files.entries()) this.#names.set(file, file.name ?? `${file.kind}-${String(index + 1)}`);
    this.kept = files.slice(-limits.attachmentsMax).map((file) => ({ file, name: this.#nameOf(file) }));
  }

  /** A piece as a transcript shows it. */
  show(piece: Piece): string {
    if (typeof piece === 'string') return piece;
    const isKept = this.kept.some(({ file }) => file === piece);
    return isKept ? `[${this.#nameOf(piece)}]` : `[${this.#nameOf(piece)}, no longer attached]`;
  }

  #nameOf(file: GivenFile): string {
    return this.#names.get(file) ?? file.kind;
  }
}

function refused(path: string, message: string): AppError {
  return new AppError('invalid_request', undefined, { errors: [{ path, message }] });
}
