import { inspect } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { asModelError, redact } from './attempts.ts';
import { brokenStream } from './call-failure.ts';

const key = 'sk-0123456789+abcdef/xyz';

describe('the error of a call', () => {
  it('has no piece of an answer that is no JSON, which may be the key', () => {
    const parse = (): unknown => JSON.parse(`${key.slice(3)}`);
    const failure = brokenStream(`not JSON: ${key}`, captureError(parse));
    expect(inspect(asModelError(failure, { ref: 'test/one', apiKey: key }))).not.toContain(key.slice(3, 12));
    const other = new Error('the connection was cut');
    expect(asModelError(brokenStream('cut', other), { ref: 'test/one', apiKey: key }).cause).toBe(other);
  });
});

function captureError(act: () => unknown): unknown {
  try {
    act();
  } catch (error) {
    return error;
  }
  throw new Error('it did not fail');
}

describe('redact', () => {
  it('takes a key out of what a provider wrote, wherever it stands and however often', () => {
    expect(redact(`bad ${key}, ${key}`, key)).toBe('bad [key], [key]');
    expect(redact(`?key=${encodeURIComponent(key)}&x`, key)).toBe('?key=[key]&x');
  });

  it('takes out what is left of a key at the end of an answer that was cut', () => {
    for (let length = 8; length < key.length; length += 1) expect(redact(`bad ${key.slice(0, length)}`, key)).toBe('bad [key]');
    expect(redact(`bad ${key.slice(0, 7)}`, key)).toBe(`bad ${key.slice(0, 7)}`);
  });

  it('leaves everything as it is where there is no key, or a placeholder', () => {
    expect(redact('none of this', null)).toBe('none of this');
    expect(redact('none of this', 'none')).toBe('none of this');
  });
});
