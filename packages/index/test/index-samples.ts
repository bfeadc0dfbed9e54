import type { RemovedSession, Session, Skill, TurnRecord } from '@concierge/contract';
import type { Page } from '../src/cursor.ts';
import type { IndexSource, NamedContact, SourceSession } from '../src/types.ts';

/** 2026-03-01T10:00:00.000Z and so many seconds. */
export function at(seconds: number): string {
  return new Date(Date.UTC(2026, 2, 1, 10, 0, seconds)).toISOString();
}

/** 32 hex digits, rising with the number. */
export function sessionId(number: number): string {
  return number.toString(16).padStart(32, '0');
}

export function turn(id: string, changes: Partial<TurnRecord> = {}): TurnRecord {
  return {
    id,
    status: 'done',
    origin: 'api',
    acceptedAt: at(0),
    startedAt: at(1),
    firstTextAt: at(2),
    endedAt: at(3),
    attempts: 1,
    usage: { inputTokens: 100, outputTokens: 10 },
    models: [{ model: 'openai/gpt-5-mini', inputTokens: 100, outputTokens: 10, cachedInputTokens: 40, calls: 2, costUsd: 0.0003 }],
    finishReason: 'stop',
    error: null,
    steps: [{ kind: 'model', name: 'openai/gpt-5-mini', startedAt: at(1), durationMs: 900, isError: false }],
    requestHash: 'f'.repeat(64),
    keyId: 'k1',
    ...changes,
  };
}

export function session(number: number, changes: Partial<Session> = {}): Session {
  return {
    version: 1,
    id: sessionId(number),
    agent: 'admin',
    channel: 'web',
    sender: null,
    revision: 1,
    createdAt: at(0),
    updatedAt: at(number),
    title: `Conversation ${String(number)}`,
    messageCount: 2,
    summary: null,
    messages: [],
    turns: [],
    contextTokens: null,
    ...changes,
  };
}

export const skill = (name: string): Skill => ({
  name,
  description: `Does ${name}`,
  trigger: `when ${name}`,
  path: `skills/${name}/SKILL.md`,
});

/** SQL that takes out of the table of sessions what version 2 did not have. */
export const dropLaterColumns = ['origin', 'sender', 'last_message', 'last_from', 'has_failed', 'words']
  .map((column) => `alter table sessions drop column ${column};`)
  .join(' ');

/** A contact whose folder is named by a number. */
export function contact(number: number, sender: string, displayName: string | null = null): NamedContact {
  return { folder: sessionId(number), sender, displayName };
}

/** The files of a tenant as a test wants them. */
export class Files implements IndexSource {
  readonly held: SourceSession[] = [];
  readonly removals: RemovedSession[] = [];
  readonly skillList: Skill[] = [];
  readonly contactList: NamedContact[] = [];
  /** Runs after the first session was read. */
  meanwhile: () => Promise<void> = async () => Promise.resolve();

  constructor(...sessions: Session[]) {
    this.held.push(...sessions.map((each) => ({ session: each, turns: each.turns })));
  }

  async *sessions(): AsyncGenerator<SourceSession> {
    for (const [index, each] of this.held.entries()) {
      yield each;
      if (index === 0) await this.meanwhile();
    }
  }

  async *removed(): AsyncGenerator<RemovedSession> {
    yield* this.removals;
    await Promise.resolve();
  }

  async *contacts(): AsyncGenerator<NamedContact> {
    yield* this.contactList;
    await Promise.resolve();
  }

  async skills(): Promise<readonly Skill[]> {
    return Promise.resolve(this.skillList);
  }

  async catchUpContacts(): Promise<void> {
    await Promise.resolve();
  }
}

/** All items of a list, from its first page to its last. */
export async function allPages<Item>(page: (cursor: string | undefined) => Promise<Page<Item>>): Promise<Item[]> {
  const items: Item[] = [];
  let cursor: string | undefined;
  do {
    const { items: more, nextCursor } = await page(cursor);
    items.push(...more);
    cursor = nextCursor ?? undefined;
  } while (cursor !== undefined);
  return items;
}
