import { describe, expect, it } from '@jest/globals';
import { explain } from './chat-failure.ts';
import { duration, relativeTime } from './relative-time.ts';
import { readNextCursor } from '../json-client.ts';
import { formatRoute, parseOldFragment, parseRoute } from './route.ts';
import { SavedTurnStore } from './saved-turns.ts';

describe('relativeTime', () => {
  const now = Date.parse('2026-11-20T12:00:00Z');
  it.each([
    ['2026-11-20T11:59:30Z', 'now'],
    ['2026-11-20T11:55:00Z', '5 min'],
    ['2026-11-20T09:00:00Z', '3 h'],
    ['2026-11-18T09:00:00Z', '2 d'],
  ])('formats %s as %s', (at, said) => {
    expect(relativeTime(at, now)).toBe(said);
  });

  it('adds the year to a date in another one', () => {
    expect(relativeTime('2024-03-01T12:00:00Z', now)).toContain('2024');
  });
});

describe('duration', () => {
  it.each([
    [5, '5 ms'],
    [1234, '1.2 s'],
    [125_000, '2 min 5 s'],
  ])('formats %d ms as %s', (ms, said) => {
    expect(duration(ms)).toBe(said);
  });
});

describe('parseRoute', () => {
  it('reads back what formatRoute writes', () => {
    for (const route of [
      { page: 'new', agent: 'cs' },
      { page: 'conversation', contactId: 'a'.repeat(32) },
    ] as const) {
      expect(parseRoute(formatRoute(route))).toEqual(route);
    }
  });

  it('starts a conversation with the admin agent for any other address', () => {
    for (const path of ['', '/chat', '/chat/../../etc', '/chat/new/', '/chat/nothing'])
      expect(parseRoute(path)).toEqual({ page: 'new', agent: 'admin' });
  });

  it('understands the addresses of earlier versions', () => {
    const contactId = 'a'.repeat(32);
    expect(parseOldFragment(`#/c/${contactId}`)).toEqual({ page: 'conversation', contactId });
    expect(parseOldFragment('#/new/cs')).toEqual({ page: 'new', agent: 'cs' });
    expect(parseOldFragment('#main')).toBeUndefined();
  });
});

describe('readNextCursor', () => {
  it('finds the cursor of the next page among other links', () => {
    expect(readNextCursor('</api/sessions?limit=2>; rel="first", </api/sessions?limit=2&cursor=a%2Cb>; rel="next"')).toBe('a,b');
  });

  it('finds none without a next page', () => {
    expect(readNextCursor(null)).toBeNull();
    expect(readNextCursor('</api/sessions>; rel="first"')).toBeNull();
  });
});

describe('explain', () => {
  it('states what happened and what to do, as sentences', () => {
    expect(explain({ code: 'revoked_key', message: 'The API key has been revoked' })).toBe(
      'The API key has been revoked. Ask for a new key and sign in with it.',
    );
  });
});

describe('SavedTurnStore', () => {
  it('gives back what was saved, each conversation apart, and nothing when what is there is not its own', () => {
    const kept = new Map<string, string>();
    const storage = {
      getItem: (name: string) => kept.get(name) ?? null,
      setItem: (name: string, text: string) => void kept.set(name, text),
      removeItem: (name: string) => void kept.delete(name),
    };
    const turn = {
      key: 'k',
      turnId: null,
      question: { text: 'hi', attachments: [], at: '2026-11-20T12:00:00.000Z' },
      body: { message: 'hi' },
    };
    const store = new SavedTurnStore(storage);
    store.save('one', [turn]);
    expect(store.load('one')).toEqual([turn]);
    expect(store.load('other')).toEqual([]);
    store.save('one', []);
    expect(kept.size).toBe(0);
    kept.set('concierge.turns.one', '{"not": "turns"}');
    expect(store.load('one')).toEqual([]);
  });

  it('goes on without storage', () => {
    const refuse = (): never => {
      throw new Error('no storage');
    };
    const store = new SavedTurnStore({ getItem: refuse, setItem: refuse, removeItem: refuse });
    expect(store.load('one')).toEqual([]);
    expect(() => store.save('one', [])).not.toThrow();
  });
});
