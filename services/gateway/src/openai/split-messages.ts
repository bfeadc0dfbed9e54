import { createHash } from 'node:crypto';
import { AppError } from '@concierge/contract';
import type { Piece, ReceivedMessage } from './openai-messages.ts';

/** A message of the conversation; instructions of the application are none. */
export type Line = ReceivedMessage & { readonly role: 'user' | 'assistant' | 'tool' };

interface SplitMessages {
  readonly before: readonly Line[];
  readonly question: readonly Piece[];
}

/**
 * The new message is all that the user wrote after the last answer.
 * @throws AppError `invalid_request` when there is none
 */
export function splitMessages(said: readonly ReceivedMessage[], param: string): SplitMessages {
  const lines = linesIn(said);
  const last = lines.findLastIndex(({ role }) => role !== 'user');
  const question = lines.slice(last + 1).map(({ pieces }) => pieces);
  if (question.length > 0) return { before: lines.slice(0, last + 1), question: question.flat() };
  const hint = lines.at(-1)?.role === 'tool' ? ': agents answer their own tool calls' : '';
  throw new AppError('invalid_request', undefined, { errors: [{ path: param, message: `must end with a message of the user${hint}` }] });
}

/**
 * A conversation as a caller sends it: what was asked last before the new message, and the answer to that; null for a
 * conversation that begins.
 */
export interface GivenHistory {
  /** Digest of everything up to the message that was answered. */
  readonly asked: string;
  readonly answer: string;
}

export function readGivenHistory(said: readonly ReceivedMessage[]): GivenHistory | null {
  const lines = linesIn(said);
  const answerEnd = lines.findLastIndex(({ role }) => role !== 'user');
  const questionEnd = lines.slice(0, answerEnd + 1).findLastIndex(({ role }) => role === 'user');
  if (questionEnd < 0) return null;
  const answer = lines.slice(questionEnd + 1, answerEnd + 1).filter(({ role }) => role === 'assistant');
  return {
    asked: digestOf(lines.slice(0, questionEnd + 1)),
    answer: comparable(answer.flatMap(({ pieces }) => pieces.filter((piece) => typeof piece === 'string')).join('')),
  };
}

/** Digest of a conversation up to its new message: what the next request sends as `asked`. */
export function hashMessages(said: readonly ReceivedMessage[]): string {
  return digestOf(linesIn(said));
}

/** Applications trim and wrap the texts that they keep. */
export function comparable(text: string): string {
  return text.replaceAll(/\s+/gu, ' ').trim();
}

function linesIn(said: readonly ReceivedMessage[]): Line[] {
  return said.filter((entry): entry is Line => entry.role !== 'instructions');
}

function digestOf(lines: readonly Line[]): string {
  const hash = createHash('sha256');
  for (const { role, pieces } of lines) {
    const parts = pieces.map((piece) => (typeof piece === 'string' ? comparable(piece) : { ...piece, at: '' }));
    hash.update(JSON.stringify([role, parts]));
  }
  return hash.digest('hex');
}
