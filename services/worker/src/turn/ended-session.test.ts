import { describe, expect, it } from '@jest/globals';
import { Conversation } from '@concierge/agent';
import type { AcceptedTurn, Session, TurnRecord } from '@concierge/contract';
import { endedSession, newSession, turnRecordBounds } from './ended-session.ts';

const now = '2026-11-20T10:00:00.000Z';
const turn: AcceptedTurn = {
  version: 1,
  turnId: 't1',
  tenantId: 'acme',
  sessionId: '0'.repeat(32),
  acceptedAtMs: 0,
  origin: 'api',
  agent: 'admin',
  authority: 'admin',
  channel: 'web',
  sender: null,
  text: 'hello',
  attachments: [],
  requestHash: 'h',
  keyId: null,
};
const buildRecord = (id: string): TurnRecord => ({
  id,
  status: 'done',
  origin: 'api',
  acceptedAt: now,
  startedAt: now,
  firstTextAt: null,
  endedAt: now,
  attempts: 1,
  usage: { inputTokens: 0, outputTokens: 0 },
  models: [],
  finishReason: 'stop',
  error: null,
  steps: [],
  requestHash: 'h',
  keyId: null,
});

describe('the session after a turn', () => {
  it('is called after the first line of its first message, cut between words', () => {
    expect(newSession({ ...turn, text: '\n  What is\tup? \nmore' }, now).title).toBe('What is up?');
    const long = newSession({ ...turn, text: `${'word '.repeat(30)}` }, now).title;
    expect(long).toMatch(/^(?:word )+word…$/u);
    expect(long.length).toBeLessThanOrEqual(81);
    expect(newSession({ ...turn, text: '😀'.repeat(60) }, now).title.isWellFormed()).toBe(true);
    expect(newSession({ ...turn, text: ' \n ' }, now).title).toBe('Conversation');
  });

  it('names what began it, also after other turns', () => {
    const heartbeat = newSession({ ...turn, origin: 'heartbeat' }, now);
    const { next } = endedSession(heartbeat, new Conversation(heartbeat, 't1'), {
      records: [buildRecord('t1')],
      channelAddress: undefined,
    });
    expect([next.origin, newSession({ ...turn, origin: 'webhook' }, now).origin]).toEqual(['heartbeat', 'channel']);
  });

  it('names every turn until there are many, then moves the older ones to the history', () => {
    let session: Session = newSession(turn, now);
    const moved: string[] = [];
    const total = turnRecordBounds.max * 2;
    for (let number = 1; number <= total; number += 1) {
      const { next, history } = endedSession(session, new Conversation(session, `t${String(number)}`), {
        records: [buildRecord(`t${String(number)}`)],
        channelAddress: undefined,
      });
      moved.push(...history.flatMap((line) => (line.kind === 'turn' ? [line.turn.id] : [])));
      session = next;
      expect(session.turns.length).toBeLessThanOrEqual(turnRecordBounds.max);
      expect(session.turns.at(-1)?.id).toBe(`t${String(number)}`);
    }
    const ids = [...moved, ...session.turns.map(({ id }) => id)];
    expect(ids).toEqual(Array.from({ length: total }, (_, place) => `t${String(place + 1)}`));
    expect(session.revision).toBe(total);
  });
});

describe('the title of a heartbeat’s conversation', () => {
  const heartbeat = { ...turn, origin: 'heartbeat', text: 'This is your heartbeat: nobody has written.' } as const;
  const ended = (text: string): Session => {
    const conversation = new Conversation(
      { id: heartbeat.sessionId, messages: [], summary: null, messageCount: 0, contextTokens: null },
      't1',
    );
    conversation.apply({ kind: 'said', message: { id: 't1.1', turnId: 't1', at: now, role: 'assistant', text } });
    const records = [{ ...buildRecord('t1'), origin: 'heartbeat' }] as const;
    return endedSession(newSession(heartbeat, now), conversation, { records, channelAddress: undefined }).next;
  };

  it('is what the agent reports, never the instruction that began it', () => {
    expect(newSession(heartbeat, now).title).toBe('Heartbeat');
    expect(ended('The inbox is full.\nTwo of them are urgent.').title).toBe('Heartbeat: The inbox is full.');
    expect(ended('').title).toBe('Heartbeat');
  });
});
