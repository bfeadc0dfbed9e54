import { describe, expect, it } from '@jest/globals';
import { buildHandoffCode } from './handoff-notifications.ts';

const id = (start: string): string => start.padEnd(32, '0');

describe('the code of a conversation', () => {
  it('is the shortest beginning of its id that no other one has', () => {
    expect(buildHandoffCode(id('abcd'), [])).toBe('abcd');
    expect(buildHandoffCode(id('abcd1'), [id('abcd1'), id('ffff')])).toBe('abcd');
    expect(buildHandoffCode(id('abcd12'), [id('abcd13'), id('abcd12'), id('abcf')])).toBe('abcd12');
  });
});
