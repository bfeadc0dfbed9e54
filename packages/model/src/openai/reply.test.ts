import { describe, expect, it } from '@jest/globals';
import { limits } from '@concierge/contract';
import { CallFailure } from './call-failure.ts';
import type { ReasoningField } from './dialect.ts';
import { Chunk, openEventParser, plainTextChunk, Reply, ToolCallSlots, type ReplyOptions, type ToolCallDelta } from './reply.ts';

function read(...pieces: string[]): string[] {
  const found: string[] = [];
  const events = openEventParser((data) => found.push(data));
  for (const piece of pieces) events.feed(piece);
  return found;
}

const stream = ': hello\r\nevent: x\r\ndata: {"a":\r\ndata: 1}\r\nid: 7\r\n\r\ndata:two\n\ndata:  three\r\r\n: bye\n\n';

describe('the events of a reply', () => {
  it('reads the data of events with any line ending', () => {
    expect(read(stream)).toEqual(['{"a":\n1}', 'two', ' three']);
  });

  it('reads the same wherever the stream is cut', () => {
    for (let cut = 0; cut <= stream.length; cut += 1) expect(read(stream.slice(0, cut), stream.slice(cut))).toEqual(read(stream));
    expect(read(...stream.split(''))).toEqual(read(stream));
  });

  it('waits for the blank line, or the end', () => {
    const found: string[] = [];
    const events = openEventParser((data) => found.push(data));
    events.feed('data: late');
    expect(found).toEqual([]);
    events.feed('\n\n');
    expect(found).toEqual(['late']);
  });

  it('are refused when one is longer than any reply, before it has come to its end', () => {
    const events = openEventParser(() => undefined);
    const megabyte = 'x'.repeat(1024 * 1024);
    events.feed('data: ');
    const feedAll = (): void => {
      for (let fed = 0; fed <= 64; fed += 1) events.feed(megabyte);
    };
    expect(feedAll).toThrow(CallFailure);
  });
});

function assemble(...deltas: ToolCallDelta[]) {
  const slots = new ToolCallSlots();
  for (const delta of deltas) slots.add(delta);
  return slots.finish();
}

describe('ToolCallSlots', () => {
  it('joins arguments by index', () => {
    expect(
      assemble(
        { index: 0, id: 'a', function: { name: 'read', arguments: '{"p' } },
        { index: 1, id: 'b', function: { name: 'write', arguments: '' } },
        { index: 0, function: { arguments: '":1}' } },
        { index: 1, function: { arguments: '{}' } },
      ),
    ).toEqual([
      { id: 'a', name: 'read', arguments: '{"p":1}' },
      { id: 'b', name: 'write', arguments: '{}' },
    ]);
  });

  it('distinguishes parallel calls that all carry index 0', () => {
    expect(
      assemble(
        { index: 0, id: 'a', function: { name: 'read', arguments: '{}' } },
        { index: 0, id: 'b', function: { name: 'read', arguments: '{"x":1}' } },
      ),
    ).toEqual([
      { id: 'a', name: 'read', arguments: '{}' },
      { id: 'b', name: 'read', arguments: '{"x":1}' },
    ]);
  });

  it.each([
    ['of one index', 0],
    ['without an index', undefined],
  ])('distinguishes parallel calls %s that have no ids, in pieces or whole', (_name, index) => {
    const [first, second, third, ...others] = assemble(
      { index, function: { name: 'read', arguments: '{"a"' } },
      { index, function: { arguments: ':1}' } },
      { index, id: '', function: { name: 'read', arguments: '{"a":' } },
      { index, function: { arguments: '2}' } },
      { index, function: { name: 'write', arguments: '{}' } },
    );
    expect(first).toMatchObject({ name: 'read', arguments: '{"a":1}' });
    expect(second).toMatchObject({ name: 'read', arguments: '{"a":2}' });
    expect(third).toMatchObject({ name: 'write', arguments: '{}' });
    expect(others).toEqual([]);
    expect(new Set([first?.id, second?.id, third?.id]).size).toBe(3);
  });

  it('takes a name without an id once, however often it is repeated, until the arguments are whole', () => {
    const pieces = ['{"a":"}', '","b":{"c":1}', '}', '\n', ' ', ''];
    const calls = assemble(...pieces.map((piece) => ({ index: 0, function: { name: 'read', arguments: piece } })));
    expect(calls).toMatchObject([{ name: 'read', arguments: pieces.join('') }]);
  });

  it.each([
    ['first', 'a', ''],
    ['second', '', 'a'],
  ])('distinguishes parallel calls of one index of which only the %s has an id', (_name, id, other) => {
    const calls = assemble(
      { index: 0, id, function: { name: 'read', arguments: '{}' } },
      { index: 0, id: other, function: { name: 'write', arguments: '{}' } },
    );
    expect(calls).toMatchObject([
      { name: 'read', arguments: '{}' },
      { name: 'write', arguments: '{}' },
    ]);
  });

  it('takes an id that comes with a repeated name for that of the call', () => {
    expect(
      assemble(
        { index: 0, function: { name: 'read', arguments: '{"a"' } },
        { index: 0, id: 'a', function: { name: 'read', arguments: ':1}' } },
      ),
    ).toEqual([{ id: 'a', name: 'read', arguments: '{"a":1}' }]);
  });

  it('takes a call that is told again as a whole for the same one', () => {
    const call = { index: 0, function: { name: 'pay', arguments: '{"amount":1}' } };
    expect(assemble(call, call)).toMatchObject([{ name: 'pay', arguments: '{"amount":1}' }]);
    expect(assemble({ ...call, id: 'a' }, { ...call, id: 'a' })).toEqual([{ id: 'a', name: 'pay', arguments: '{"amount":1}' }]);
  });

  it('takes deltas without an index as belonging to the last call', () => {
    expect(assemble({ id: 'a', function: { name: 'read', arguments: '{' } }, { function: { arguments: '}' } })).toEqual([
      { id: 'a', name: 'read', arguments: '{}' },
    ]);
  });

  it('takes a name once however often it is repeated', () => {
    expect(
      assemble({ index: 0, id: 'a', function: { name: 'read' } }, { index: 0, id: 'a', function: { name: 'read', arguments: '{}' } }),
    ).toEqual([{ id: 'a', name: 'read', arguments: '{}' }]);
  });

  it('gives the second of two calls with one id another', () => {
    const [first, second] = assemble({ index: 0, id: 'a', function: { name: 'x' } }, { index: 1, id: 'a', function: { name: 'y' } });
    expect(first?.id).toBe('a');
    expect(second?.id).toMatch(/^call_[0-9a-f]{32}$/u);
  });
});

const choice = (delta: object, rest: object = {}): object => ({ id: 'x', choices: [{ index: 0, delta, finish_reason: null, ...rest }] });

describe('plainTextChunk', () => {
  it('reads a piece of text as the schema does', () => {
    const chunk = choice({ content: 'hello' });
    const parsed = Chunk.parse(chunk);
    expect(plainTextChunk(chunk)?.choices?.[0]?.delta).toEqual(parsed.choices?.[0]?.delta);
    expect(plainTextChunk(chunk)?.choices?.[0]?.index).toBe(parsed.choices?.[0]?.index);
  });

  it.each([
    ['an end', choice({ content: '' }, { finish_reason: 'stop' })],
    ['a tool call', choice({ content: '', tool_calls: [{ index: 0 }] })],
    ['a refusal', choice({ content: '', refusal: 'no' })],
    ['a signature', choice({ content: '', reasoning: null, reasoning_details: [{ type: 'reasoning.encrypted' }] })],
    ['typed parts', choice({ content: [{ text: 'hello' }] })],
    ['another choice', choice({ content: 'hello' }, { index: 1 })],
    ['usage', { choices: [], usage: { prompt_tokens: 1, completion_tokens: 1 } }],
    ['an error', { error: { message: 'broken' }, choices: [] }],
    ['no object', 'text'],
  ])('leaves %s to the schema', (_name, json) => {
    expect(plainTextChunk(json)).toBeUndefined();
  });
});

function finished(field: ReasoningField | undefined, ...deltas: unknown[]) {
  return finishOver({ reasoningField: field }, deltas);
}

function finishOver(options: Omit<ReplyOptions, 'offersTools'>, deltas: readonly unknown[]) {
  const reply = new Reply({ offersTools: false, ...options });
  for (const delta of deltas) reply.add(JSON.stringify({ choices: [{ index: 0, delta }] }));
  reply.add('{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}');
  return reply.finish();
}

describe('the thoughts of a reply', () => {
  const call = { id: 'a', function: { name: 'read', arguments: '{}' } };
  const signed = { google: { thought_signature: 'abc' } };

  it('are put together and are no text', () => {
    const deltas = [{ content: '', reasoning_content: 'be' }, { content: null, reasoning_content: 'cause' }, { content: 'Yes' }];
    expect(finished(undefined, ...deltas)).toMatchObject({ text: 'Yes', reasoning: 'because' });
    expect(finished(undefined, { content: 'Yes', reasoning_content: null })).not.toHaveProperty('reasoning');
  });

  it('have the name that the provider gives them', () => {
    expect(finished('reasoning', { content: '', reasoning: 'because' })).toMatchObject({ reasoning: 'because' });
    expect(finished(undefined, { content: '', reasoning: 'because' })).not.toHaveProperty('reasoning');
  });

  it('are cut where they are longer than what is kept', () => {
    const piece = { reasoning_content: 'x'.repeat(limits.reasoningMaxCharacters - 1) };
    expect(finished(undefined, piece, piece, piece).reasoning).toHaveLength(limits.reasoningMaxCharacters);
  });

  it('are signed on the call, with its first delta or behind its arguments', () => {
    const kept = [{ id: 'a', name: 'read', arguments: '{}', extra: signed }];
    expect(finished(undefined, { tool_calls: [{ ...call, extra_content: signed }] }).toolCalls).toEqual(kept);
    expect(finished(undefined, { tool_calls: [call] }, { tool_calls: [{ extra_content: signed }] }).toolCalls).toEqual(kept);
  });

  it('are signed on the first of parallel calls, which Google sends without an index', () => {
    const second = { id: 'b', function: { name: 'write', arguments: '{}' } };
    expect(finished(undefined, { tool_calls: [{ ...call, extra_content: signed }, second] }).toolCalls).toEqual([
      { id: 'a', name: 'read', arguments: '{}', extra: signed },
      { id: 'b', name: 'write', arguments: '{}' },
    ]);
  });

  it('are signed beside the calls over OpenRouter, by their ids, before them or behind them', () => {
    const detail = { type: 'reasoning.encrypted', id: 'a', data: 'abc', format: 'google-gemini-v1', index: 0 };
    const signature = { content: '', reasoning_details: [{ type: 'reasoning.text', text: 'because', format: detail.format }, detail] };
    const calls = { tool_calls: [call, { ...call, id: 'b' }] };
    const { id: _id, ...kept } = detail;
    const finish = (...deltas: unknown[]) => finishOver({ reasoningField: 'reasoning', signatureField: 'reasoning_details' }, deltas);
    for (const deltas of [[signature, calls], [calls, signature], [{ ...signature, ...calls }]])
      expect(finish(...deltas).toolCalls).toEqual([
        { id: 'a', name: 'read', arguments: '{}', extra: { openrouter: kept } },
        { id: 'b', name: 'read', arguments: '{}' },
      ]);
    const notGoogles = { reasoning_details: [{ ...detail, format: 'anthropic-claude-v1' }, { ...detail, id: 'z' }, 'abc'] };
    for (const given of [notGoogles, { reasoning_details: 'abc' }])
      expect(JSON.stringify(finish(calls, given).toolCalls)).not.toContain('extra');
    expect(JSON.stringify(finished(undefined, signature, calls).toolCalls)).not.toContain('extra');
  });

  it('lose a signature that is too long or none, and keep the call', () => {
    const long = { google: { thought_signature: 'x'.repeat(limits.callExtraMaxCharacters) } };
    for (const extra of [long, 'abc', { google: 'abc' }, { google: { deep: { er: 1 } } }, null])
      expect(finished(undefined, { tool_calls: [{ ...call, extra_content: extra }] }).toolCalls).toEqual([
        { id: 'a', name: 'read', arguments: '{}' },
      ]);
  });
});
