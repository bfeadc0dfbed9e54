import { createHash } from 'node:crypto';
import type { SessionMessage } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';
import type { HistoryCursor, HistoryCursors } from '@concierge/turn';
import { toLines, type Line, type ReceivedMessage } from './openai-messages.ts';

/** The scope in which a history is looked for: two keys, or two agents, never share a conversation. */
export interface HistoryOwner {
  readonly scope: TenantScope;
  readonly keyId: string;
  readonly agent: string;
}

/**
 * A conversation as a caller sends it: what was asked last before the new message, and the answer to that; null for a
 * conversation that begins.
 */
interface GivenHistory {
  /** Digest of everything up to the message that was answered. */
  readonly asked: string;
  readonly answer: string;
}

/**
 * Recognises the conversation of a caller that keeps none of our ids and sends its whole history each time. A session
 * is found only while the history ends where the session does, with the answer that was given there: one that was
 * edited or cut is another conversation.
 */
export class KnownHistories {
  readonly #cursors: HistoryCursors;

  constructor(cursors: HistoryCursors) {
    this.#cursors = cursors;
  }

  /** The session to continue, which no other caller with the same history gets then; null when there is none. */
  async take(owner: HistoryOwner, { asked, answer }: GivenHistory): Promise<HistoryCursor | null> {
    const name = buildHistoryName(owner, asked);
    for (const cursor of await this.#cursors.list(name)) {
      if ((await endsWith(owner.scope, cursor, answer)) && (await this.#cursors.take(name, cursor))) return cursor;
    }
    return null;
  }

  /** The next request sends `asked`, and continues behind this turn. */
  async remember(owner: HistoryOwner, asked: string, cursor: HistoryCursor): Promise<void> {
    await this.#cursors.add(buildHistoryName(owner, asked), cursor);
  }
}

function buildHistoryName({ scope, keyId, agent }: HistoryOwner, asked: string): string {
  return [scope.tenantId, keyId, agent, asked].join('/');
}

/** A caller that stopped reading a reply sends it as far as it was read. */
async function endsWith(scope: TenantScope, { sessionId, turnId }: HistoryCursor, answer: string): Promise<boolean> {
  const session = await scope.sessions.load(sessionId);
  if (answer === '' || session?.turns.at(-1)?.id !== turnId) return false;
  return comparable(readReply(session.messages, turnId)).startsWith(answer);
}

function readReply(messages: readonly SessionMessage[], turnId: string): string {
  return messages.flatMap((message) => (message.turnId === turnId && message.role === 'assistant' ? [message.text] : [])).join('');
}

export function readGivenHistory(said: readonly ReceivedMessage[]): GivenHistory | null {
  const lines = toLines(said);
  const answerEnd = lines.findLastIndex(({ role }) => role !== 'user');
  const questionEnd = lines.slice(0, answerEnd + 1).findLastIndex(({ role }) => role === 'user');
  if (questionEnd < 0) return null;
  const answer = lines.slice(questionEnd + 1, answerEnd + 1).filter(({ role }) => role === 'assistant');
  return {
    asked: hashLines(lines.slice(0, questionEnd + 1)),
    answer: comparable(answer.flatMap(({ pieces }) => pieces.filter((piece) => typeof piece === 'string')).join('')),
  };
}

/** Digest of a conversation up to its new message: what the next request sends as `asked`. */
export function hashMessages(said: readonly ReceivedMessage[]): string {
  return hashLines(toLines(said));
}

/** Applications trim and wrap the texts that they keep. */
function comparable(text: string): string {
  return text.replaceAll(/\s+/gu, ' ').trim();
}

function hashLines(lines: readonly Line[]): string {
  const hash = createHash('sha256');
  for (const { role, pieces } of lines) {
    const parts = pieces.map((piece) => (typeof piece === 'string' ? comparable(piece) : { ...piece, at: '' }));
    hash.update(JSON.stringify([role, parts]));
  }
  return hash.digest('hex');
}
