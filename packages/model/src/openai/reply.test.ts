import { describe, expect, it } from '@jest/globals';
import { CallFailure } from './call-failure.ts';
import { openEventParser } from './reply.ts';

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
