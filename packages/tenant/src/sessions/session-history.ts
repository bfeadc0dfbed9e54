import { join } from 'node:path';
import { unlink } from 'node:fs/promises';
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import {
  HistoryLine,
  type Session,
  type SessionMessage,
  type SessionTurn,
  SessionView,
  type TurnRecord,
  RemovedSession,
} from '@concierge/contract';
import { toTurnView } from '@concierge/index';
import {
  appendLines,
  ignoreMissing,
  lstatIfThere,
  parseAllLines,
  parseLines,
  readIfThere,
  replaceFile,
  type FolderSync,
  isSystemError,
  parseStored,
} from '@concierge/files';

export interface SessionHistoryLines {
  readonly messages: readonly SessionMessage[];
  readonly turns: readonly TurnRecord[];
}

/**
 * sessions/<id>.history.jsonl: what compaction took out of a session. Only ever appended to; a crash may repeat or tear
 * lines.
 */
export class SessionHistory {
  readonly #folder: string;
  readonly #folders: FolderSync;

  constructor(folder: string, folders: FolderSync) {
    this.#folder = folder;
    this.#folders = folders;
  }

  /** On disk when it returns: the session file without these may be published then. */
  async append(id: string, lines: readonly HistoryLine[]): Promise<void> {
    const texts = lines.map((line) => JSON.stringify(line));
    await appendLines(this.#toHistoryPath(id), texts, { path: this.#folder, folders: this.#folders });
  }

  /** Each message and turn once, the first time it was written: before anything cut its output short. */
  async read(id: string): Promise<SessionHistoryLines> {
    const text = await readIfThere(this.#toHistoryPath(id));
    const messages = new Map<string, SessionMessage>();
    const turns = new Map<string, TurnRecord>();
    for (const line of parseLines(HistoryLine, text ?? '')) {
      if (line.kind === 'message' && !messages.has(line.message.id)) messages.set(line.message.id, line.message);
      if (line.kind === 'turn' && !turns.has(line.turn.id)) turns.set(line.turn.id, line.turn);
    }
    return { messages: [...messages.values()], turns: [...turns.values()] };
  }

  /**
   * Rewrites each message; on disk when it returns. Only for the holder of the conversation's lease: what is appended
   * meanwhile would be lost.
   * @throws LaterVersionError
   */
  async rewrite(id: string, change: (message: SessionMessage) => Promise<SessionMessage>): Promise<void> {
    const path = this.#toHistoryPath(id);
    const text = await readIfThere(path);
    if (text === undefined) return;
    const lines: string[] = [];
    for (const line of parseAllLines(HistoryLine, { text, path }))
      lines.push(JSON.stringify(line.kind === 'message' ? { ...line, message: await change(line.message) } : line));
    const name = historyName(id);
    await replaceFile({ folder: this.#folder, name, content: `${lines.join('\n')}\n`, folders: this.#folders });
  }

  /**
   * Removes the messages, where none was appended since then; records of turns stay, as what they used is counted from
   * them. What is appended while this writes would be lost.
   * @returns whether there were any
   * @throws LaterVersionError
   */
  async removeMessages(id: string, beforeMs: number): Promise<boolean> {
    const path = this.#toHistoryPath(id);
    const stats = await lstatIfThere(path);
    if (stats === undefined || stats.mtimeMs >= beforeMs) return false;
    const lines = parseAllLines(HistoryLine, { text: (await readIfThere(path)) ?? '', path });
    const turns = lines.filter(({ kind }) => kind === 'turn').map((line) => JSON.stringify(line));
    // A new file, also where only records were left: by its time it is not looked at again for as long.
    if (turns.length > 0)
      await replaceFile({ folder: this.#folder, name: historyName(id), content: `${turns.join('\n')}\n`, folders: this.#folders });
    else await this.remove(id);
    return turns.length < lines.length;
  }

  /** One that compaction took out. A file that does not name it is not parsed. */
  async findTurn(id: string, turnId: string): Promise<TurnRecord | undefined> {
    const text = await readIfThere(this.#toHistoryPath(id));
    if (text?.includes(`"${turnId}"`) !== true) return undefined;
    const turns = parseLines(HistoryLine, text).flatMap((line) => (line.kind === 'turn' ? [line.turn] : []));
    return turns.find((turn) => turn.id === turnId);
  }

  async remove(id: string): Promise<void> {
    await ignoreMissing(unlink(this.#toHistoryPath(id)));
  }

  #toHistoryPath(id: string): string {
    return join(this.#folder, historyName(id));
  }
}

function historyName(id: string): string {
  return `${id}.history.jsonl`;
}

/**
 * The whole conversation in order. A message may be in both files, when compaction stopped between the two or only cut
 * its output short: the place is the session's, the content the history's, which is the original.
 */
export function mergeMessages(history: readonly SessionMessage[], current: readonly SessionMessage[]): SessionMessage[] {
  const originals = new Map(history.map((message) => [message.id, message]));
  const ids = new Set(current.map((message) => message.id));
  return [...history.filter((message) => !ids.has(message.id)), ...current.map((message) => originals.get(message.id) ?? message)];
}

/** Every turn of the conversation once, in order of their ends. */
export function mergeTurns(history: readonly TurnRecord[], current: readonly TurnRecord[]): TurnRecord[] {
  const ids = new Set(current.map((turn) => turn.id));
  return [...history.filter((turn) => !ids.has(turn.id)), ...current];
}

/** GET /api/sessions/{id}: without what was added to messages for the model. */
export function viewSession(session: Session, history: readonly SessionMessage[]): SessionView {
  const { id, createdAt, updatedAt, agent, channel, origin = 'user', title, messageCount, forkedFrom } = session;
  return {
    id,
    createdAt,
    updatedAt,
    agent,
    channel,
    origin,
    title,
    messageCount,
    ...(forkedFrom !== undefined && { forkedFrom }),
    messages: SessionView.shape.messages.parse(mergeMessages(history, session.messages)),
  };
}

/** An ended turn as a page of its conversation shows it, which says itself whose turn it is. */
export function toSessionTurn({ id: sessionId, agent, channel }: Session, record: TurnRecord): SessionTurn {
  const { contact_id: _sessionId, agent: _agent, channel: _channel, ...turn } = toTurnView({ sessionId, agent, channel, record });
  return { ...turn, steps: record.steps };
}

export interface PageQuery {
  /** Turns of one page. */
  readonly limit: number;
  /** Id of the first message of the page after this one; undefined for the last page. */
  readonly before?: string | undefined;
}

/**
 * The messages of the last `limit` turns before a message, whole turns only; undefined when there is no such message.
 * The search for the first one passes over each message of the page once.
 */
export function cutMessages(messages: readonly SessionMessage[], { limit, before }: PageQuery): MessagePage | undefined {
  const end = before === undefined ? messages.length : messages.findIndex(({ id }) => id === before);
  if (end === -1) return undefined;
  const turns = new Set<string>();
  let start = end;
  for (; start > 0; start -= 1) {
    const turnId = messages[start - 1]?.turnId ?? '';
    if (!turns.has(turnId) && turns.size === limit) break;
    turns.add(turnId);
  }
  return { messages: messages.slice(start, end), turnIds: turns, before: start === 0 ? null : (messages[start]?.id ?? null) };
}

export interface MessagePage {
  readonly messages: readonly SessionMessage[];
  readonly turnIds: ReadonlySet<string>;
  /** Where the page before this one ends; null when this one is the first. */
  readonly before: string | null;
}

/**
 * sessions/.deleted.jsonl: what removed sessions had used, so that the usage of past days does not change. Only ever
 * appended to.
 */
export class RemovedSessions {
  readonly #folder: string;
  readonly #folders: FolderSync;

  constructor(folder: string, folders: FolderSync) {
    this.#folder = folder;
    this.#folders = folders;
  }

  async append(removed: RemovedSession): Promise<void> {
    await appendLines(this.#path, [JSON.stringify(removed)], { path: this.#folder, folders: this.#folders });
  }

  /** As they were written; a removal that was tried again stands there again. */
  async *read(): AsyncGenerator<RemovedSession> {
    const lines = createInterface({ input: createReadStream(this.#path, 'utf8'), crlfDelay: Infinity });
    try {
      for await (const line of lines) {
        const parsed = line === '' ? undefined : parseStored(RemovedSession, line);
        if (parsed?.status === 'ok') yield parsed.value;
      }
    } catch (error) {
      if (!isSystemError(error, 'ENOENT')) throw error;
    } finally {
      lines.close();
    }
  }

  async has(id: string, createdAt: string): Promise<boolean> {
    for await (const removed of this.read()) {
      if (removed.id === id && removed.createdAt === createdAt) return true;
    }
    return false;
  }

  get #path(): string {
    return join(this.#folder, '.deleted.jsonl');
  }
}
