import { describe, expect, it } from '@jest/globals';
import { ConciergeError } from '@concierge/client';
import { explainFailure } from './chat-failure.ts';
import { z } from 'zod';
import { readJson, readNextCursor } from '../json-client.ts';
import { previewMessage } from './preview-message.ts';
import { formatRoute, parseOldFragment, parseRoute } from './route.ts';
import { SavedTurnStore } from './saved-turns.ts';

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

describe('readJson', () => {
  const readNumber = async (body: string | ReadableStream): Promise<unknown> =>
    readJson(new Response(body), z.number()).catch(({ code, isTransient }: ConciergeError) => ({ code, isTransient }));

  it('distinguishes an answer that broke off, which is worth another request, from one of something else', async () => {
    expect(await readNumber('1')).toBe(1);
    for (const other of ['"1"', '1 1', '']) expect(await readNumber(other)).toEqual({ code: 'unexpected_answer', isTransient: false });
    const brokenOff = new ReadableStream({
      start: (answer) => {
        answer.enqueue(new TextEncoder().encode('1'));
        answer.error(new TypeError('network error'));
      },
    });
    expect(await readNumber(brokenOff)).toEqual({ code: 'unreachable', isTransient: true });
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

describe('a failure in words', () => {
  const words = {
    happened: {},
    advice: { revoked_key: 'Ask for a new key and sign in with it.', provider_error: 'Try again in a moment.' },
  };
  const failure = (code: string, message: string): ConciergeError => new ConciergeError(message, { status: 400, code });

  it('is what happened and what to do, as sentences', () => {
    expect(explainFailure(failure('revoked_key', 'The API key has been revoked'), words)).toBe(
      'The API key has been revoked. Ask for a new key and sign in with it.',
    );
  });

  it('is that of a turn, too, which is no error of a request', () => {
    expect(explainFailure({ code: 'provider_error', message: 'The provider broke', retryable: true }, words)).toBe(
      'The provider broke. Try again in a moment.',
    );
  });

  it('gives no advice behind one: of two the second could contradict the first', () => {
    for (const message of [
      'The model provider refused the request. openai/gpt-5: the provider does not accept the key (401 invalid_api_key).',
      'The model provider cannot be reached. Try again later.',
      'The file is damaged; set it up again',
    ])
      expect(explainFailure(failure('provider_error', message), words)).toMatch(/^(?!.*in a moment)/u);
  });

  it('is in the reader’s language, where that has words for it', () => {
    const german = { happened: { revoked_key: 'Der Schlüssel wurde widerrufen.' }, advice: { revoked_key: 'Bitten Sie um einen neuen.' } };
    expect(explainFailure(failure('revoked_key', 'The API key has been revoked'), german)).toBe(
      'Der Schlüssel wurde widerrufen. Bitten Sie um einen neuen.',
    );
    expect(explainFailure(failure('constructor', 'Something else'), german)).toBe('Something else.');
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

describe('previewMessage', () => {
  const preview = (text: string): string => previewMessage({ from: 'agent', text });

  it.each([
    ['It is **on its way**, _today_ or ***tomorrow***.', 'It is on its way, today or tomorrow.'],
    ['# Hours\n\nWe open:\n\n- **Mon** at nine\n* [x] Tue\n1. Wed', 'Hours We open: • Mon at nine • Tue 1. Wed'],
    ['See [the **shop**](https://shop.example/a_b_c "Shop") and ![a hat](https://shop.example/hat.png).', 'See the shop and a hat.'],
    ['Run `npm **i**`:\n\n```sh\nnpm i\n```\n> ~~old~~', 'Run npm **i**: npm i old'],
    ['| Size | Price |\n|:--|--:|\n| S | 1 € |\n\n---\nend', 'Size | Price S | 1 € end'],
    ['snake_case_name, 2 * 3 * 4, a\\*b\\* and a half [link](', 'snake_case_name, 2 * 3 * 4, a*b* and a half [link]('],
    ['[a](https://shop.example/\\_b) `c`', 'a c'],
    ['**cut in the', '**cut in the'],
    ['', ''],
  ])('keeps the words of %j', (text, words) => {
    expect(preview(text)).toBe(words);
  });

  it('leaves what a contact has written, but for its lines', () => {
    expect(previewMessage({ from: 'contact', text: ' **2**\n* 3 ' })).toBe('**2** * 3');
  });

  it.each(['*', '_', '[', '`', '**a', '> ', '- ', '|', '\\', '![](', '\u{1F600}'])('takes no longer for very many %j', (part) => {
    // The shortest of a few: a busy machine may stand still in the middle of any.
    const took = Array.from({ length: 5 }, () => {
      const began = performance.now();
      expect(preview(part.repeat(200_000)).isWellFormed()).toBe(true);
      return performance.now() - began;
    });
    expect(Math.min(...took)).toBeLessThan(500);
  });
});
