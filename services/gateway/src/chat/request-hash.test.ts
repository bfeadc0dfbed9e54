import { describe, expect, it } from '@jest/globals';
import { requestHash, type AskedFor } from './request-hash.ts';

const asked: AskedFor = { agent: 'cs', message: 'hello', contactId: null, sender: 'ada', channel: 'web', attachmentKeys: ['u_1', 'u_2'] };

describe('requestHash', () => {
  it('is the same for the same request', () => {
    expect(requestHash({ ...asked })).toBe(requestHash(asked));
    expect(requestHash(asked)).toMatch(/^[0-9a-f]{64}$/u);
  });

  it.each([
    { agent: 'admin' },
    { message: 'hello ' },
    { contactId: 'a'.repeat(32) },
    { sender: null },
    { channel: 'channel_a' },
    { attachmentKeys: ['u_2', 'u_1'] },
    { attachmentKeys: [] },
  ])('changes with %p', (difference) => {
    expect(requestHash({ ...asked, ...difference })).not.toBe(requestHash(asked));
  });

  it('does not take one field for another', () => {
    expect(requestHash({ ...asked, sender: 'a', contactId: null })).not.toBe(requestHash({ ...asked, sender: null, contactId: 'a' }));
  });
});
