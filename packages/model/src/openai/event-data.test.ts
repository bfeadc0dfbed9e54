import { describe, expect, it } from '@jest/globals';
import { EventData } from './event-data.ts';

function read(...pieces: string[]): string[] {
  const found: string[] = [];
  const events = new EventData((data) => found.push(data));
  for (const piece of pieces) events.feed(piece);
  return found;
}

const stream = ': hello\r\nevent: x\r\ndata: {"a":\r\ndata: 1}\r\nid: 7\r\n\r\ndata:two\n\ndata:  three\r\r\n: bye\n\n';

describe('EventData', () => {
  it('reads the data of events with any line ending', () => {
    expect(read(stream)).toEqual(['{"a":\n1}', 'two', ' three']);
  });

  it('reads the same wherever the stream is cut', () => {
    for (let cut = 0; cut <= stream.length; cut += 1) expect(read(stream.slice(0, cut), stream.slice(cut))).toEqual(read(stream));
    expect(read(...stream.split(''))).toEqual(read(stream));
  });

  it('waits for the blank line, or the end', () => {
    const found: string[] = [];
    const events = new EventData((data) => found.push(data));
    events.feed('data: late');
    expect(found).toEqual([]);
    events.end();
    expect(found).toEqual(['late']);
  });
});
