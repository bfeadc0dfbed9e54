import { describe, expect, it } from '@jest/globals';
import { CommandOutput } from './command-output.ts';

function readText(maxBytes: number, ...pieces: readonly (string | Buffer)[]): string {
  const output = new CommandOutput(maxBytes);
  for (const piece of pieces) output.add(Buffer.from(piece));
  return output.end();
}

describe('the output of a command', () => {
  it('is what was written when there is room', () => {
    expect(readText(10, '01234', '56789')).toBe('0123456789');
    expect(readText(10)).toBe('');
  });

  it('is its beginning and its end when there is not', () => {
    expect(readText(10, '0123456789x')).toBe('01234\n[... 1 bytes of output left out here ...]\n6789x');
    expect(readText(10, ...'abcdefghijklmnopqrstuvwxyz'.split(''))).toBe('abcde\n[... 16 bytes of output left out here ...]\nvwxyz');
  });

  it('keeps characters whole, in pieces and at the cuts', () => {
    const bytes = Buffer.from('é€😀');
    expect(readText(100, ...[...bytes].map((byte) => Buffer.of(byte)))).toBe('é€😀');
    for (let maxBytes = 2; maxBytes < 40; maxBytes += 1) {
      const text = readText(maxBytes, '😀'.repeat(10), 'é'.repeat(10));
      expect(text).not.toContain('\uFFFD');
      expect(text.isWellFormed()).toBe(true);
    }
  });

  it('has a mark where there were no characters', () => {
    expect(readText(100, Buffer.of(0x61, 0xff, 0x00, 0x62, 0xc3))).toBe('a\uFFFD\uFFFDb\uFFFD');
  });

  it('counts all bytes and reports as many as it keeps, without a gap', () => {
    const emitted: string[] = [];
    const output = new CommandOutput(10, (chunk) => emitted.push(chunk));
    for (const piece of ['abcdefgh', '€', 'ij', 'kl']) output.add(Buffer.from(piece));
    expect(output.bytes).toBe(15);
    expect(emitted).toEqual(['abcdefgh']);
  });
});
