import { describe, expect, it } from '@jest/globals';
import { replyText } from '@concierge/client';
import type { TurnEvent } from '@concierge/contract';

import { applyEvent, hasEnded, newTurn, type ChatTurn } from './chat-turn.ts';

const session: TurnEvent = { type: 'session', data: { contact_id: 'c', turnId: 't1' } };
const say = (delta: string): TurnEvent => ({ type: 'text_delta', data: { delta } });
const start = (id: string): TurnEvent => ({ type: 'tool_call_start', data: { id, name: 'read', input: { path: 'USER.md' } } });
const end = (id: string): TurnEvent => ({ type: 'tool_call_end', data: { id, name: 'read', durationMs: 12, isError: false } });
const result = (id: string, isError = false): TurnEvent => ({
  type: 'tool_result',
  data: { id, name: 'read', output: `out ${id}`, isError },
});
const reset: TurnEvent = { type: 'text_reset', data: { reason: 'worker_lost' } };
const done: TurnEvent = { type: 'done', data: { inputTokens: 7, outputTokens: 3, finishReason: 'stop' } };

function after(...events: TurnEvent[]): ChatTurn {
  let turn = newTurn({ key: 'k' });
  for (const event of events) turn = applyEvent(turn, event);
  return turn;
}

describe('applyEvent', () => {
  it('waits once the service has accepted the message, and runs at the first word', () => {
    expect(after(session)).toMatchObject({ turnId: 't1', state: { at: 'waiting' } });
    expect(after(session, say('Hi')).state).toEqual({ at: 'running' });
  });

  it('joins the words of one passage', () => {
    expect(after(session, say('Hel'), say('lo')).parts).toEqual([{ kind: 'text', text: 'Hello' }]);
  });

  it('keeps the order of text and tools, and begins a new passage after a tool', () => {
    const { parts } = after(session, say('Let me look.'), start('a'), end('a'), result('a'), say('Found.'));
    expect(parts.map((part) => (part.kind === 'text' ? part.text : part.id))).toEqual(['Let me look.', 'a', 'Found.']);
  });

  it('fills in duration, output and status of a tool call', () => {
    const { parts } = after(session, start('a'), end('a'), result('a'), start('b'), result('b', true));
    expect(parts).toEqual([
      expect.objectContaining({ id: 'a', status: 'ok', durationMs: 12, output: 'out a' }),
      expect.objectContaining({ id: 'b', status: 'error', durationMs: null, output: 'out b' }),
    ]);
  });

  it('shows the output of a call while it runs', () => {
    const says = (delta: string): TurnEvent => ({ type: 'tool_call_progress', data: { id: 'a', name: 'read', delta } });
    expect(after(session, start('a'), says('one\n'), says('two\n')).parts).toEqual([
      expect.objectContaining({ id: 'a', status: 'running', progress: 'one\ntwo\n', output: null }),
    ]);
  });

  it('shows a tool call once when its start is replayed', () => {
    expect(after(session, start('a'), start('a'), result('a')).parts).toHaveLength(1);
  });

  it('begins anew, tool calls and all, when the stream was lost', () => {
    const lost: TurnEvent = { type: 'text_reset', data: { reason: 'stream_lost' } };
    const turn = after(
      session,
      say('First.'),
      start('a'),
      result('a'),
      say('Half a sen'),
      lost,
      say('First.'),
      start('a'),
      result('a'),
      say('All.'),
    );
    expect(turn.parts).toEqual(after(session, say('First.'), start('a'), result('a'), say('All.')).parts);
  });

  it('takes back the text since the last tool result on a reset, and nothing before it', () => {
    const turn = after(session, say('First.'), start('a'), result('a'), say('Half a sen'), reset, say('A whole sentence.'));
    expect(replyText(turn)).toBe('First.\n\nA whole sentence.');
  });

  it('takes back all text when no tool has answered yet, and keeps the call that is open', () => {
    const turn = after(session, say('Half'), start('a'), reset);
    expect(turn.parts).toEqual([expect.objectContaining({ kind: 'tool', id: 'a', status: 'running' })]);
  });

  it('ends with usage and reason', () => {
    const turn = after(session, say('Hi'), done);
    expect(turn.state).toEqual({ at: 'done', finishReason: 'stop', usage: { inputTokens: 7, outputTokens: 3 } });
    expect(hasEnded(turn)).toBe(true);
  });

  it('does not leave a tool running when the turn has ended', () => {
    expect(after(session, start('a'), done).parts).toEqual([expect.objectContaining({ status: 'error' })]);
  });

  it('keeps the text when the turn fails', () => {
    const turn = after(session, say('I will'), {
      type: 'error',
      data: { code: 'provider_error', message: 'broke', retryable: true, turnId: 't1' },
    });
    expect(replyText(turn)).toBe('I will');
    expect(turn.state).toEqual({ at: 'failed', failure: { code: 'provider_error', message: 'broke', retryable: true } });
  });
});
