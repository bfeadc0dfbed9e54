import { describe, expect, it } from '@jest/globals';
import type { InboundMessage } from '@concierge/channel';
import { codePoints, limits, type BusyPolicy } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';
import { toChannelMessage, toTurnInput, chooseBusyRule } from './inbound-turns.ts';

const message: InboundMessage = {
  kind: 'message',
  providerMessageId: 'mid.1',
  eventId: null,
  messageRef: 'mid.1',
  sender: { id: '9', aliases: [], displayName: null, isExternal: false },
  conversation: { id: '9', threadId: null, isGroup: false, account: '201' },
  text: 'hello',
  media: [],
  albumId: '131',
  replyTo: null,
  sentAtMs: null,
};

function readText(text: string): string {
  const channelMessage = toChannelMessage(message);
  if (channelMessage === undefined) throw new Error('It cannot be read.');
  // eslint-disable-next-line typescript/no-unsafe-type-assertion -- nothing of the tenant is looked at
  const from = { scope: {} as TenantScope, channel: 'channel_b', account: '200' } as const;
  return toTurnInput(from, { message: { ...message, text }, channelMessage, sender: '9', rule: { busy: 'queue' } }).text;
}

describe('a channel message, as a turn', () => {
  it('keeps the account that was written to, and the album that a picture is of', () => {
    expect(toChannelMessage(message)).toMatchObject({ address: { to: '9', thread: null, account: '201' }, albumId: '131' });
  });

  it('has all of its text, as long as that is not longer than a message may be', () => {
    const text = '😀'.repeat(limits.messageMaxCharacters);
    expect(readText(text)).toBe(text);
  });

  it('states that it was longer, and by how much, where it was', () => {
    const text = readText('😀'.repeat(limits.messageMaxCharacters + 1000));
    expect(codePoints(text)).toBeLessThanOrEqual(limits.messageMaxCharacters);
    const [, left] = /^(?:😀)+\n\n\[The message goes on: (?<left>\d+) more characters were left out\.\]$/u.exec(text) ?? [];
    expect([...text.matchAll(/😀/gu)].length + Number(left)).toBe(limits.messageMaxCharacters + 1000);
  });
});

const settings = (busy: BusyPolicy | 'collect', debounceMs?: number) => ({
  channels: { telegram: { busy, ...(debounceMs !== undefined && { debounceMs }) } },
});

describe('what becomes of a message beside others', () => {
  it('is decided for pictures as for words: the question about a picture comes after it', () => {
    expect(chooseBusyRule({}, 'channel_c', {})).toEqual({ busy: 'collect', debounceMs: 1500 });
    expect(chooseBusyRule(settings('collect', 3000), 'channel_c', {})).toEqual({ busy: 'collect', debounceMs: 3000 });
    expect(chooseBusyRule(settings('queue'), 'channel_c', {})).toEqual({ busy: 'queue' });
  });

  it.each(['collect', 'queue', 'interrupt', 'reject'] as const)('is one answer for the pictures of one album, also with %s', (busy) => {
    expect(chooseBusyRule(settings(busy, 0), 'channel_c', { albumId: '131' })).toEqual({ busy: 'collect', debounceMs: 1500 });
  });

  it('waits longer for an album where the channel waits longer', () => {
    expect(chooseBusyRule(settings('collect', 4000), 'channel_c', { albumId: '131' })).toEqual({ busy: 'collect', debounceMs: 4000 });
  });
});
