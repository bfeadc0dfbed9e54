import { describe, expect, it } from '@jest/globals';
import { redact } from './attempts.ts';

const key = 'sk-0123456789+abcdef/xyz';

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
