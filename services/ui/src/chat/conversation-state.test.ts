import { describe, expect, it } from '@jest/globals';
import { replyText } from '@concierge/client';
import type { SessionView, TurnView } from '@concierge/contract';
import { mergeTurns, withStored, toStoredTurns } from './conversation-state.ts';
import { newTurn } from './chat-turn.ts';

const at = '2026-11-20T12:00:00.000Z';
type Message = SessionView['messages'][number];

const question = (turnId: string, text: string): Message => ({ id: `${turnId}-u`, turnId, at, role: 'user', text });
const answer = (turnId: string, text: string): Extract<Message, { role: 'assistant' }> => ({
  id: `${turnId}-a`,
  turnId,
  at,
  role: 'assistant',
  text,
});

function sessionWith(...messages: Message[]): SessionView {
  const facts = { agent: 'admin', channel: 'web', origin: 'user', title: 'T' } as const;
  return { id: 'c', createdAt: at, updatedAt: at, ...facts, messageCount: messages.length, messages };
}

function view(id: string, status: TurnView['status'], acceptedAt = at): TurnView {
  const usage = { inputTokens: 5, outputTokens: 2 };
  const times = { acceptedAt, startedAt: null, firstTextAt: null, endedAt: null };
  return {
    id,
    contact_id: 'c',
    agent: 'admin',
    channel: 'web',
    origin: 'api',
    status,
    ...times,
    attempts: 1,
    usage,
    finishReason: 'stop',
    error: null,
  };
}

describe('toStoredTurns', () => {
  it('recognises what staff wrote in the agent’s place', () => {
    const by = { kind: 'key', keyId: 'anna' } as const;
    const turns = toStoredTurns(
      sessionWith(question('t1', 'Hello?'), { ...answer('t2', 'Anna here.'), by }, answer('t3', 'The agent again.')),
    );
    expect(turns.map(({ isFromStaff }) => isFromStaff)).toEqual([false, true, false]);
    expect(mergeTurns({ session: null, views: [{ ...view('t4', 'waiting'), origin: 'person' }], saved: [] })).toMatchObject([
      { turnId: 't4', isFromStaff: true },
    ]);
  });

  it('groups messages by turn, with tool results in their calls', () => {
    const [turn] = toStoredTurns(
      sessionWith(
        question('t1', 'Who am I?'),
        { ...answer('t1', 'Let me look.'), toolCalls: [{ id: 'a', name: 'read', arguments: '{"path":"USER.md"}' }] },
        { id: 'x', turnId: 't1', at, role: 'tool', callId: 'a', name: 'read', output: 'Ada', isError: false },
        { ...answer('t1', 'You are Ada.'), id: 'y' },
      ),
    );
    expect(turn?.question?.text).toBe('Who am I?');
    expect(turn?.parts).toEqual([
      { kind: 'text', text: 'Let me look.' },
      expect.objectContaining({ kind: 'tool', input: { path: 'USER.md' }, output: 'Ada', status: 'ok' }),
      { kind: 'text', text: 'You are Ada.' },
    ]);
  });

  it('shows arguments that are no JSON as they were written', () => {
    const [turn] = toStoredTurns(sessionWith({ ...answer('t1', ''), toolCalls: [{ id: 'a', name: 'read', arguments: '{"path"' }] }));
    expect(turn?.parts).toEqual([expect.objectContaining({ input: { arguments: '{"path"' }, status: 'error' })]);
  });

  it('adds usage and reason where the service still lists the turn', () => {
    const turns = toStoredTurns(sessionWith(question('t1', 'a'), answer('t1', 'b'), question('t2', 'c'), answer('t2', 'd')), [
      view('t2', 'done'),
    ]);
    expect(turns.map((turn) => turn.state)).toEqual([
      { at: 'done', finishReason: null, usage: null },
      { at: 'done', finishReason: 'stop', usage: { inputTokens: 5, outputTokens: 2 } },
    ]);
  });
});

describe('mergeTurns', () => {
  const saved = { key: 'k2', turnId: 't2', question: { text: 'second', attachments: [], at }, body: { message: 'x' } };

  it('puts turns under way after the stored ones, in the order of acceptance, with the questions of this tab', () => {
    const views = [
      view('t3', 'waiting', '2026-11-20T12:02:00.000Z'),
      view('t2', 'running', '2026-11-20T12:01:00.000Z'),
      view('t1', 'done'),
    ];
    const turns = mergeTurns({ session: sessionWith(question('t1', 'first'), answer('t1', 'x')), views, saved: [saved] });
    expect(turns.map(({ turnId, question: asked, state }) => [turnId, asked?.text, state.at])).toEqual([
      ['t1', 'first', 'done'],
      ['t2', 'second', 'running'],
      ['t3', undefined, 'waiting'],
    ]);
  });

  it('shows a turn once when it has ended between the reload and the answer', () => {
    const turns = mergeTurns({ session: sessionWith(question('t2', 'second'), answer('t2', 'x')), views: [], saved: [saved] });
    expect(turns).toHaveLength(1);
    expect(turns[0]?.state.at).toBe('done');
  });

  it('sends again what was never accepted, and follows what was', () => {
    const turns = mergeTurns({ session: null, views: [], saved: [saved, { ...saved, key: 'k3', turnId: null }] });
    expect(turns.map(({ key, state }) => [key, state.at])).toEqual([
      ['k2', 'waiting'],
      ['k3', 'sending'],
    ]);
  });
});

describe('withStored', () => {
  it('puts earlier turns first and leaves a turn under way as it is', () => {
    const running = newTurn({ key: 'k', turnId: 't2', state: { at: 'running' }, parts: [{ kind: 'text', text: 'live' }] });
    const turns = withStored([running], toStoredTurns(sessionWith(question('t1', 'a'), answer('t1', 'b'), question('t2', 'c'))));
    expect(turns.map((turn) => turn.turnId)).toEqual(['t1', 't2']);
    expect(turns[1]).toBe(running);
  });

  it('gives an ended turn the question it lacked and keeps what the stream sent', () => {
    const ended = newTurn({
      key: 'k',
      turnId: 't1',
      state: { at: 'done', finishReason: 'stop', usage: null },
      parts: [{ kind: 'text', text: 'told' }],
    });
    const [turn] = withStored([ended], toStoredTurns(sessionWith(question('t1', 'asked elsewhere'), answer('t1', 'stored'))));
    expect(turn).toMatchObject({ key: 'k', question: { text: 'asked elsewhere' } });
    expect(turn && replyText(turn)).toBe('told');
  });
});
