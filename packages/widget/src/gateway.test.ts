import { describe, expect, it } from '@jest/globals';
import { readKept, readSubject } from './browser-memory.ts';
import { readConversation, readLook } from './gateway.ts';
import { buildStyles, inkOn } from './styles.ts';

describe('what the service or the browser’s storage holds', () => {
  it('is read as far as it is understood', () => {
    expect(readConversation({ messages: [{ id: 'a', from: 'person', text: 'x', more: 1 }, null], withPerson: 1 })).toEqual({
      messages: [
        { id: 'a', turnId: '', from: 'person', text: 'x', at: '' },
        { id: '', turnId: '', from: 'agent', text: '', at: '' },
      ],
      withPerson: false,
      askAgainSeconds: 60,
    });
    expect(readKept({ key: 'k', text: 't', turnId: 7 })).toEqual({ key: 'k', text: 't', turnId: null });
    expect(readKept('k')).toBeNull();
  });

  it('never becomes style: a colour is a colour', () => {
    const { appearance } = readLook({ appearance: { colour: '#fff;}body{display:none', position: 'top' } });
    expect(appearance).toMatchObject({ colour: '#2457d6', position: 'right' });
    expect(buildStyles(appearance)).toContain('--on-accent: #fff');
  });

  it('names the subject of a token, and none for what is no token', () => {
    expect(readSubject(`${Buffer.from('{"sub":"ann?>"}').toString('base64url')}.x`)).toBe('ann?>');
    expect(['', 'x', '.', '!.!'].map(readSubject)).toEqual(['', '', '', '']);
  });
});

describe('the ink on the owner’s colour', () => {
  it.each([
    ['#ffffff', '#000'],
    ['#ffee00', '#000'],
    ['#000000', '#fff'],
    ['#2457d6', '#fff'],
  ])('can be read on %s', (colour, ink) => {
    expect(inkOn(colour)).toBe(ink);
  });
});
