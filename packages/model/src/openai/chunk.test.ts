import { describe, expect, it } from '@jest/globals';
import { Chunk, plainTextChunk } from './chunk.ts';

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
    ['typed parts', choice({ content: [{ text: 'hello' }] })],
    ['another choice', choice({ content: 'hello' }, { index: 1 })],
    ['usage', { choices: [], usage: { prompt_tokens: 1, completion_tokens: 1 } }],
    ['an error', { error: { message: 'broken' }, choices: [] }],
    ['no object', 'text'],
  ])('leaves %s to the schema', (_name, json) => {
    expect(plainTextChunk(json)).toBeUndefined();
  });
});
