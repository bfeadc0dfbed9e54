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

  it('says how long its calls took, what it cost and why it failed', () => {
    const step = (name: string, durationMs: number) => ({ kind: 'tool' as const, name, startedAt: at, durationMs, isError: false });
    const call = (id: string, name: string) => ({ id, name, arguments: '{}' });
    const session = sessionWith(
      question('t1', 'Look'),
      { ...answer('t1', ''), toolCalls: [call('a', 'read'), call('b', 'bash'), call('c', 'read')] },
      question('t2', 'Fail'),
    );
    const { contact_id: _contact, agent: _agent, channel: _channel, ...first } = view('t1', 'done');
    const steps = [step('read', 5), { ...step('read', 1), within: 'bash' }, step('bash', 70), step('read', 9)];
    const error = { code: 'provider_error' as const, message: 'It broke' };
    const { contact_id: _c, agent: _a, channel: _ch, ...second } = { ...view('t2', 'failed'), error };
    const [done, failed] = toStoredTurns({ ...session, turns: [{ ...first, costUsd: 0.25, steps }, second] });
    expect(done?.parts.map((part) => (part.kind === 'tool' ? part.durationMs : null))).toEqual([5, 70, 9]);
    expect(done?.state).toMatchObject({ at: 'done', costUsd: 0.25 });
    expect(failed?.state).toMatchObject({ at: 'failed', failure: { code: 'provider_error', message: 'It broke' } });
  });

  it('keeps earlier pages before the last one when that is read again', () => {
    const ended = (turnId: string) => newTurn({ key: turnId, turnId, state: { at: 'done', finishReason: 'stop', usage: null } });
    const shown = [ended('t1'), ended('t2'), ended('t3')];
    const stored = [ended('t2'), ended('t3'), ended('t4')];
    expect(withStored(shown, stored).map(({ turnId }) => turnId)).toEqual(['t1', 't2', 't3', 't4']);
  });

  it('knows a message that was taken back before it began, and one that is to be', () => {
    const waiting: TurnView = { ...view('t2', 'waiting'), cancelling: true, input: 'second' };
    const ended: TurnView = { ...view('t1', 'cancelled'), startedAt: null, finishReason: 'cancelled' };
    const turns = mergeTurns({ session: sessionWith(question('t1', 'first')), views: [waiting, ended], saved: [] });
    expect(turns).toMatchObject([
      { turnId: 't1', state: { at: 'done', finishReason: 'cancelled', isUnbegun: true } },
      { turnId: 't2', question: { text: 'second', isExcerpt: true }, state: { at: 'done', isUnbegun: true } },
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
