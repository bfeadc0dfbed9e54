import type { SessionMessage } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';
import type { HistoryCursor, HistoryCursors } from '@concierge/turn';
import { comparable, type GivenHistory } from './split-messages.ts';

/** The scope in which a history is looked for: two keys, or two agents, never share a conversation. */
export interface HistoryOwner {
  readonly scope: TenantScope;
  readonly keyId: string;
  readonly agent: string;
}

/**
 * Recognises the conversation of a caller that keeps none of our ids and sends its whole history each time. A session
 * is found only while the history ends where the session does, with the answer that was given there: one that was
 * edited or cut is another conversation.
 */
export class KnownHistories {
  readonly #marks: HistoryCursors;

  constructor(marks: HistoryCursors) {
    this.#marks = marks;
  }

  /** The session to continue, which no other caller with the same history gets then; null when there is none. */
  async take(owner: HistoryOwner, { asked, answer }: GivenHistory): Promise<HistoryCursor | null> {
    const name = nameOf(owner, asked);
    for (const mark of await this.#marks.list(name)) {
      if ((await endsWith(owner.scope, mark, answer)) && (await this.#marks.take(name, mark))) return mark;
    }
    return null;
  }

  /** The next request sends `asked`, and continues behind this turn. */
  async remember(owner: HistoryOwner, asked: string, mark: HistoryCursor): Promise<void> {
    await this.#marks.add(nameOf(owner, asked), mark);
  }
}

function nameOf({ scope, keyId, agent }: HistoryOwner, asked: string): string {
  return [scope.tenantId, keyId, agent, asked].join('/');
}

/** A caller that stopped reading a reply sends it as far as it was read. */
async function endsWith(scope: TenantScope, { sessionId, turnId }: HistoryCursor, answer: string): Promise<boolean> {
  const session = await scope.sessions.load(sessionId);
  if (answer === '' || session?.turns.at(-1)?.id !== turnId) return false;
  return comparable(replyOf(session.messages, turnId)).startsWith(answer);
}

function replyOf(messages: readonly SessionMessage[], turnId: string): string {
  return messages.flatMap((message) => (message.turnId === turnId && message.role === 'assistant' ? [message.text] : [])).join('');
}
