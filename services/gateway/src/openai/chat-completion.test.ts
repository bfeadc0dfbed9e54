import { describe, expect, it } from '@jest/globals';
import { ChatCompletion, type ChatReply, type FinishReason, type TurnEvent } from '@concierge/contract';
import { ChatCompletionChunks, buildChatCompletion } from './chat-completion.ts';

const facts = { turnId: 't_1', contactId: 'c'.repeat(32), model: 'cs', createdAt: 1_700_000_000 };
const head = { id: 'chatcmpl-t_1', created: 1_700_000_000, model: 'cs', conversation: { id: facts.contactId } };

const session: TurnEvent = { type: 'session', data: { contact_id: facts.contactId, turnId: 't_1' } };
const text = (delta: string): TurnEvent => ({ type: 'text_delta', data: { delta } });
const call: readonly TurnEvent[] = [
  { type: 'tool_call_start', data: { id: 'c1', name: 'read', input: { path: 'SOUL.md' } } },
  { type: 'tool_call_end', data: { id: 'c1', name: 'read', durationMs: 1, isError: false } },
  { type: 'tool_result', data: { id: 'c1', name: 'read', output: 'secret', isError: false } },
];
const done = (finishReason: FinishReason = 'stop'): TurnEvent => ({
  type: 'done',
  data: { inputTokens: 3, outputTokens: 5, finishReason },
});
const failed: TurnEvent = { type: 'error', data: { code: 'provider_error', message: 'It is down.', retryable: true, turnId: 't_1' } };

function chunks(events: readonly TurnEvent[], withUsage = false): unknown[] {
  const encoder = new ChatCompletionChunks(facts, { withUsage });
  return events.flatMap((event) => encoder.encode(event)).map(({ data }) => data);
}

function chunk(delta: object, finishReason: string | null = null): object {
  return { ...head, object: 'chat.completion.chunk', choices: [{ index: 0, delta, logprobs: null, finish_reason: finishReason }] };
}

describe('ChatCompletionChunks', () => {
  it('are the role, the text and the end, without a word of the tools', () => {
    expect(chunks([session, text('a'), ...call, text('b'), done()])).toEqual([
      chunk({ role: 'assistant', content: '' }),
      chunk({ content: 'a' }),
      chunk({ content: 'b' }),
      chunk({}, 'stop'),
      '[DONE]',
    ]);
  });

  it('end with the usage where it is asked for, which the other chunks mark as absent', () => {
    const all = chunks([session, text('a'), done()], true);
    expect(all.slice(0, 3)).toMatchObject([{ usage: null }, { usage: null }, { usage: null }]);
    expect(all.slice(3)).toEqual([
      { ...head, object: 'chat.completion.chunk', choices: [], usage: { prompt_tokens: 3, completion_tokens: 5, total_tokens: 8 } },
      '[DONE]',
    ]);
  });

  it.each([
    ['stop', 'stop'],
    ['max_turns', 'stop'],
    ['length', 'length'],
    ['cancelled', 'length'],
    ['content_filter', 'content_filter'],
  ] as const)('say %s as %s', (ours, theirs) => {
    expect(chunks([session, done(ours)]).at(-2)).toEqual(chunk({}, theirs));
    const whole = buildChatCompletion(facts, { ...reply, finishReason: ours });
    expect(whole.choices[0]?.finish_reason).toBe(theirs);
  });

  it('end a failed turn with an error and nothing after it', () => {
    const encoder = new ChatCompletionChunks(facts, { withUsage: true });
    const data = [session, text('a'), failed].flatMap((event) => encoder.encode(event)).map((frame) => frame.data);
    expect(data.at(-1)).toEqual({ error: { message: 'It is down.', type: 'server_error', param: null, code: 'provider_error' } });
    expect(data).not.toContain('[DONE]');
    expect(encoder.cutOff()).toEqual([]);
  });

  it('announce that they are cut off, unless the turn has ended', () => {
    const encoder = new ChatCompletionChunks(facts, { withUsage: false });
    encoder.encode(session);
    expect(encoder.cutOff()).toMatchObject([{ data: { error: { code: 'shutting_down', type: 'server_error' } } }]);
    encoder.encode(done());
    expect(encoder.cutOff()).toEqual([]);
  });
});

const reply: ChatReply = {
  contact_id: facts.contactId,
  turnId: 't_1',
  reply: 'ab',
  toolCalls: [{ id: 'c1', name: 'read', input: {}, output: 'secret', isError: false }],
  usage: { inputTokens: 3, outputTokens: 5 },
  finishReason: 'stop',
};

describe('buildChatCompletion', () => {
  it('is the whole reply, without a word of the tools', () => {
    const whole = buildChatCompletion(facts, reply);
    expect(ChatCompletion.parse(whole)).toEqual(whole);
    expect(whole).toMatchObject({ ...head, object: 'chat.completion', usage: { total_tokens: 8 } });
    expect(whole.choices[0]?.message).toEqual({ role: 'assistant', content: 'ab', refusal: null });
    expect(JSON.stringify(whole)).not.toContain('secret');
  });
});
