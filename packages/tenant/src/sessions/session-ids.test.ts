import { describe, expect, it } from '@jest/globals';
import { toContactFolder, isHashedName, deriveSessionId } from './session-ids.ts';

describe('session ids', () => {
  it('are the first 32 hex digits of SHA-256 over agent, channel and sender joined by U+001F', () => {
    // printf 'cs\037channel_a\037+491701234567' | sha256sum
    expect(deriveSessionId('cs', 'channel_a', '+491701234567')).toBe('e8951a51c423419c212d34a1ab2d05d9');
    // printf 'jürgen' | sha256sum
    expect(toContactFolder('jürgen')).toBe('19b720a911fced55aecd96bf4ddcada1');
  });

  it('differ where the parts differ, even when their concatenation does not', () => {
    expect(deriveSessionId('cs', 'web', 'ab')).not.toBe(deriveSessionId('cs', 'weba', 'b'));
  });

  it('are the only names of sessions on disk', () => {
    expect(isHashedName(deriveSessionId('cs', 'web', 'x'))).toBe(true);
    for (const name of ['..', '', 'A'.repeat(32), `${'a'.repeat(32)}/x`, 'a'.repeat(33)]) expect(isHashedName(name)).toBe(false);
  });
});
