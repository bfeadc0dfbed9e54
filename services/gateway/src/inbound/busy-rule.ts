import type { InboundMessage } from '@concierge/channel';
import { appNameOf, type MessagingChannel, type BusyPolicy, type TenantSettings, type TurnInput } from '@concierge/contract';

/**
 * Pieces of one question follow each other within this time: words after words, a question after its picture, the
 * pictures of an album.
 */
const DEBOUNCE_MS = 1500;

export type BusyRule = Pick<TurnInput, 'busy' | 'debounceMs'>;

/**
 * The rule of tenant.json for the channel, under either of its names. The pictures of an album are collected whatever
 * the rule: the provider delivers one message as several. Queued, each would have an answer, and with `interrupt`
 * or `reject` only one of them would be seen.
 */
export function busyRuleOf(
  { channels = {} }: Pick<TenantSettings, 'channels'>,
  channel: MessagingChannel,
  { albumId }: Pick<InboundMessage, 'albumId'>,
): BusyRule {
  const {
    busy = 'collect',
    debounceMs = DEBOUNCE_MS,
  }: { readonly busy?: BusyPolicy | 'collect' | undefined; readonly debounceMs?: number | undefined } =
    channels[channel] ?? channels[appNameOf(channel)] ?? {};
  if (albumId !== undefined) return { busy: 'collect', debounceMs: Math.max(DEBOUNCE_MS, debounceMs) };
  return busy === 'collect' ? { busy, debounceMs } : { busy };
}
