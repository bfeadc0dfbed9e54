import { describe, expect, it } from '@jest/globals';
import { readKept, readSubject } from './browser-memory.ts';
import { readConversation, readLook } from './gateway.ts';
import { buildStyles, inkOn } from './styles.ts';
import { chooseLanguage, chooseWords } from './words.ts';

describe('what the service or the browser’s storage holds', () => {
  it('is read as far as it is understood', () => {
    expect(readConversation({ messages: [{ id: 'a', from: 'person', text: 'x', more: 1 }, null], withPerson: 1 })).toEqual({
      messages: [
        { id: 'a', turnId: '', from: 'person', text: 'x', at: '', files: [] },
        { id: '', turnId: '', from: 'agent', text: '', at: '', files: [] },
      ],
      withPerson: false,
      askAgainSeconds: 60,
    });
    const files = [{ id: 'u', name: 'a.txt', more: 1 }, { id: 1 }];
    expect(readKept({ key: 'k', text: 't', files, turnId: 7 })).toEqual({
      key: 'k',
      text: 't',
      files: [{ id: 'u', name: 'a.txt' }],
      turnId: null,
    });
    expect(readKept('k')).toBeNull();
  });

  it('never becomes style: a colour is a colour', () => {
    const look = readLook({
      appearance: { colour: '#fff;}body{display:none', position: 'top' },
      display: { theme: 'x', offsetSide: '1px;}', zIndex: -1 },
    });
    expect(look.appearance).toMatchObject({ colour: '#2457d6', position: 'right' });
    expect(look.display).toMatchObject({ theme: 'auto', offsetSide: 20, offsetBottom: 20, zIndex: 2_147_483_000, launcher: 'shown' });
    expect(buildStyles(look, 'ltr')).toContain('--on-accent: #fff');
  });

  it('names the subject of a token, and none for what is no token', () => {
    expect(readSubject(`${Buffer.from('{"sub":"ann?>"}').toString('base64url')}.x`)).toBe('ann?>');
    expect(['', 'x', '.', '!.!'].map(readSubject)).toEqual(['', '', '', '']);
  });
});

describe('the language of the widget', () => {
  it.each([
    [['de-AT', 'en'], 'de'],
    [['', 'pt-BR'], 'pt'],
    [['it', 'ja', 'AR-eg', 'fr'], 'ar'],
    [['', 'it'], 'en'],
    [['constructor', 'es'], 'es'],
  ])('of %j is %s', (wanted, language) => {
    expect(chooseLanguage(wanted)).toBe(language);
  });

  it('has the owner’s own texts, and its own where the owner has changed nothing', () => {
    const plain = readLook({ appearance: { greeting: 'Hello! How can we help?' } });
    expect(chooseWords('de', plain).greeting).toBe('Hallo! Wie können wir helfen?');
    expect(chooseWords('de', readLook({ appearance: { greeting: 'Ahoy', title: 'Ask us' } }))).toMatchObject({
      greeting: 'Ahoy',
      title: 'Ask us',
      send: 'Senden',
    });
    const own = readLook({ appearance: { greeting: 'Ahoy' }, display: { texts: { de: { greeting: 'Moin', placeholder: 'Schreib' } } } });
    expect(chooseWords('de', own)).toMatchObject({ greeting: 'Moin', placeholder: 'Schreib' });
    expect(chooseWords('fr', own).greeting).toBe('Ahoy');
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
