import type { AppChannel } from './channel-binding.ts';

/** What an id of somebody looks like on each channel; what may stand between its digits is taken out first. */
const shapes: Readonly<Record<AppChannel, RegExp>> = {
  // A phone number with its country, or a business-scoped id.
  channel_a: /^(?:[1-9]\d{5,19}|[A-Z]{2}\.(?:ENT\.)?[A-Za-z0-9]{1,128})$/u,
  channel_b: /^\d{1,32}$/u,
  channel_c: /^-?\d{1,16}$/u,
  channel_d: /^[A-Z][A-Z0-9]{1,30}$/u,
};

export const recipientWords: Readonly<Record<AppChannel, string>> = {
  channel_a: 'a phone number with its country code, such as 4915112345678, or a business-scoped id such as US.13491208655302741918',
  channel_b: 'a page-scoped id, digits only',
  channel_c: 'a numeric chat id, such as 123456789 or -1001234567890',
  channel_d: 'the id of a user or a conversation, such as U0123ABCD or C0123ABCD',
};

/** The recipient as the channel spells it; undefined when it can be none. */
export function recipientOf(channel: AppChannel, to: string): string | undefined {
  const text = to.trim();
  const plain = channel === 'channel_a' && /^\+?[\d\s().-]+$/u.test(text) ? text.replaceAll(/\D/gu, '') : text;
  return shapes[channel].test(plain) ? plain : undefined;
}
