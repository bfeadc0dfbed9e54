import { describe, expect, it } from '@jest/globals';
import { messagingChannels, toAppName, channelDefinitions, readRecipient } from '@concierge/contract';
import { channelAdapters, providerUrls, renderParts, type WebhookRequest } from './index.ts';

/** The rules for every channel; a new one is covered by its line in the registry. */
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const nowMs = Date.parse('2026-11-21T12:00:00Z');
const url = 'https://chat.example.com/webhook/any/tenant';

const bodies: readonly Uint8Array[] = [
  bytes(''),
  bytes('null'),
  bytes('[]'),
  bytes('{}'),
  bytes('{"entry":[{"changes":[null]}],"object":7}'),
  bytes('a=b&a=c&%zz&=&&'),
  bytes('"'.repeat(10_000)),
  Uint8Array.from([0xff, 0xfe, 0x00, 0xd8]),
];

describe.each(messagingChannels.map((channel) => ({ channel, name: toAppName(channel) })))('$name', ({ channel, name }) => {
  const adapter = channelAdapters[channel];
  const definition = channelDefinitions[channel];

  it('is known by a name, a label and a separate provider', () => {
    expect(messagingChannels.filter((other) => toAppName(other) === name)).toEqual([channel]);
    expect(definition.label).not.toBe('');
    expect(providerUrls[definition.api.key]).toBe(definition.api.url);
  });

  it('seals fields that it has, and shows others', () => {
    const fields = Object.keys(definition.settings.shape);
    expect(fields).toEqual(expect.arrayContaining([...definition.secrets]));
    expect(definition.secrets.length).toBeGreaterThan(0);
    expect(fields.length).toBeGreaterThan(definition.secrets.length);
  });

  it('takes no text for the id of a contact', () => {
    expect(['', ' ', 'Ann', '#general', 'a\nb'].map((to) => readRecipient(channel, to))).toEqual(Array.from({ length: 5 }));
  });

  it('refuses what belongs to no binding, and asks nothing of it', () => {
    for (const body of bodies) {
      const request: WebhookRequest = { headers: {}, body, url, nowMs };
      expect(adapter.verify(request, undefined)).toBe(false);
      expect(adapter.verify({ ...request, url: undefined }, undefined)).toBe(false);
    }
    expect(adapter.handshake?.({}, undefined)).toBeUndefined();
  });

  it.each([undefined, '', ' ', 'no signature', 'sha256=', 'v0=', ['twice', 'twice']])('refuses the signature %j', (given) => {
    const names = ['x-hub-signature-256', 'x-slack-signature', 'x-telegram-bot-api-secret-token', 'x-twilio-signature'];
    const headers = Object.fromEntries(names.map((header) => [header, given]));
    expect(adapter.verify({ headers, body: bytes('{}'), url, nowMs }, undefined)).toBe(false);
  });

  it('writes each part of a long text within its limits, loses no word of it, and needs no formatting', () => {
    const words = Array.from({ length: 3000 }, (_, index) => `word${String(index)}`);
    for (const rules of adapter.allRules) {
      const parts = renderParts(words.join(' '), rules);
      const measureLength = (text: string): number => rules.dialect.lengthOf([{ text, marks: {} }]);
      for (const part of parts) expect(measureLength(part.plain)).toBeLessThanOrEqual(rules.dialect.maxLength);
      expect(parts.map(({ plain }) => plain.replace(/^\(\d+\/\d+\) /u, '')).join(' ')).toBe(words.join(' '));
    }
  });

  it('has a pace, and sending rules for every conversation hint', () => {
    for (const hint of [{}, { to: '1' }, { to: '-1', identifiers: {}, account: '2' }]) {
      const rules = adapter.rulesFor(hint);
      expect(adapter.allRules).toContain(rules);
      expect(Math.min(...Object.values(rules.pace('1')).map(Number))).toBeGreaterThan(0);
    }
  });
});
