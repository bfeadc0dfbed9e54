import { describe, expect, it } from '@jest/globals';
import type { BusyPolicy } from '@concierge/contract';
import { busyRuleOf } from './busy-rule.ts';

const settings = (busy: BusyPolicy | 'collect', debounceMs?: number) => ({
  channels: { telegram: { busy, ...(debounceMs !== undefined && { debounceMs }) } },
});

describe('what becomes of a message beside others', () => {
  it('is decided for pictures as for words: the question about a picture comes after it', () => {
    expect(busyRuleOf({}, 'channel_c', {})).toEqual({ busy: 'collect', debounceMs: 1500 });
    expect(busyRuleOf(settings('collect', 3000), 'channel_c', {})).toEqual({ busy: 'collect', debounceMs: 3000 });
    expect(busyRuleOf(settings('queue'), 'channel_c', {})).toEqual({ busy: 'queue' });
  });

  it.each(['collect', 'queue', 'interrupt', 'reject'] as const)('is one answer for the pictures of one album, also with %s', (busy) => {
    expect(busyRuleOf(settings(busy, 0), 'channel_c', { albumId: '131' })).toEqual({ busy: 'collect', debounceMs: 1500 });
  });

  it('waits longer for an album where the channel waits longer', () => {
    expect(busyRuleOf(settings('collect', 4000), 'channel_c', { albumId: '131' })).toEqual({ busy: 'collect', debounceMs: 4000 });
  });
});
