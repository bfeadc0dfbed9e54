import { describe, expect, it } from '@jest/globals';
import { CallFailure } from './call-failure.ts';
import { openEventParser, ToolCallSlots, type ToolCallDelta, Chunk, plainTextChunk } from './reply.ts';

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
    ['typed parts', choice({ content: [{ text: 'hello' }] })],
    ['another choice', choice({ content: 'hello' }, { index: 1 })],
    ['usage', { choices: [], usage: { prompt_tokens: 1, completion_tokens: 1 } }],
    ['an error', { error: { message: 'broken' }, choices: [] }],
    ['no object', 'text'],
  ])('leaves %s to the schema', (_name, json) => {
    expect(plainTextChunk(json)).toBeUndefined();
  });
});
