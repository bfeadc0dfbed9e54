import type { RemovedSession, Session, Skill, TurnRecord } from '@concierge/contract';
import type { IndexSource, SourceSession } from '../src/types.ts';

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

/** The files of a tenant as a test wants them. */
export class Files implements IndexSource {
  readonly held: SourceSession[] = [];
  readonly removals: RemovedSession[] = [];
  readonly skillList: Skill[] = [];
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

  async skills(): Promise<readonly Skill[]> {
    return Promise.resolve(this.skillList);
  }
}
