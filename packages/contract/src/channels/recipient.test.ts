import { describe, expect, it } from '@jest/globals';
import { readRecipient, type MessagingChannel } from '../channel-definitions.ts';
import { durationMs, TimeZone } from '../values/values.ts';

describe('a recipient', () => {
  it.each<[MessagingChannel, string, string]>([
    ['channel_a', '+49 (151) 123-456', '49151123456'],
    ['channel_a', 'US.13491208655302741918', 'US.13491208655302741918'],
    ['channel_a', 'US.ENT.abc', 'US.ENT.abc'],
    ['channel_b', '24000000000000001', '24000000000000001'],
    ['channel_c', ' -1001234567890 ', '-1001234567890'],
    ['channel_d', 'U0442US8QGH', 'U0442US8QGH'],
    ['channel_e', '+49 (151) 123-456', '+49151123456'],
    ['channel_e', 'whatsapp:+49 151 123456', 'whatsapp:+49151123456'],
  ])('of %s may be %j', (channel, to, spelled) => {
    expect(readRecipient(channel, to)).toBe(spelled);
  });

  it.each<[MessagingChannel, string]>([
    ['channel_a', '0151123456'],
    ['channel_a', 'US.'],
    ['channel_a', 'ann'],
    ['channel_b', 'U1'],
    ['channel_c', '@ann'],
    ['channel_c', '1e5'],
    ['channel_d', '#general'],
    ['channel_d', ''],
    ['channel_e', '49151123456'],
    ['channel_e', 'sms:+49151123456'],
  ])('of %s is not %j', (channel, to) => {
    expect(readRecipient(channel, to)).toBeUndefined();
  });
});

describe('a duration', () => {
  it('has seconds, minutes, hours or days', () => {
    expect(['90s', '15m', '4h', '1d'].map(durationMs)).toEqual([90_000, 900_000, 14_400_000, 86_400_000]);
    expect(() => durationMs('soon')).toThrow('soon is not a duration');
  });
});

describe('a time zone', () => {
  it.each(['Europe/Berlin', 'UTC', 'Australia/Lord_Howe'])('may be %s', (zone) => {
    expect(TimeZone.safeParse(zone).success).toBe(true);
  });

  it.each(['', '+02:00', 'Mars/Phobos', 'Europe/Berlin\u0000', 'x'.repeat(100)])('is not %j', (zone) => {
    expect(TimeZone.safeParse(zone).success).toBe(false);
  });
});
