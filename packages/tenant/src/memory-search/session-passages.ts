import type { Session, SessionMessage } from '@concierge/contract';
import type { Passage } from '@concierge/index';
import { packBlocks, type Block } from './split-text.ts';

/** The limit for one conversation, newest first: what lies further back is in its summary. */
const CHARACTERS_MAX = 400_000;

interface Exchange {
  readonly blocks: Block[];
  readonly atMs: number;
}

/**
 * A conversation in passages: what a contact wrote with its answer, and the summary of what compaction took out. What
 * tools gave back is left out: it is material, not conversation. `messages` is the whole of it, in order, as
 * session_history numbers it.
 */
export function sessionPassages(session: Pick<Session, 'title' | 'summary'>, messages: readonly SessionMessage[]): Passage[] {
  const { title, summary } = session;
  const said = latest(listExchanges(messages)).flatMap(({ blocks, atMs }) =>
    packBlocks(blocks).map((block): Passage => ({ title, heading: '', text: block.text, place: block.line, atMs })),
  );
  if (summary === null) return said;
  const atMs = Date.parse(summary.updatedAt);
  const told = packBlocks([{ text: summary.text, line: 1 }]).map(({ text }): Passage => ({
    title,
    heading: 'Summary',
    text,
    place: 1,
    atMs,
  }));
  return [...told, ...said];
}

function listExchanges(messages: readonly SessionMessage[]): Exchange[] {
  const exchanges: Exchange[] = [];
  for (const [index, message] of messages.entries()) {
    if (message.role === 'tool' || message.text.trim() === '') continue;
    const block = { text: `${message.role}: ${message.text.trim()}`, line: index + 1 };
    const open = exchanges.at(-1);
    if (open === undefined || message.role === 'user') exchanges.push({ blocks: [block], atMs: Date.parse(message.at) });
    else open.blocks.push(block);
  }
  return exchanges;
}

function latest(exchanges: readonly Exchange[]): readonly Exchange[] {
  let characters = 0;
  let first = exchanges.length;
  while (first > 0 && characters < CHARACTERS_MAX) {
    first -= 1;
    characters += exchanges[first]?.blocks.reduce((sum, { text }) => sum + text.length, 0) ?? 0;
  }
  return exchanges.slice(first);
}
