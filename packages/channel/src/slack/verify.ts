import type { ChannelSettings } from '@concierge/contract';
import type { WebhookRequest } from '../channel-adapter.ts';
import { headerOf, isSigned } from '../inbound/signature.ts';

/** How far Slack's clock and ours may be apart, in both directions: older ones are replays. */
const windowSeconds = 300;

export function verifySlack(request: WebhookRequest, settings: ChannelSettings['channel_d'] | undefined): boolean {
  const at = headerOf(request, 'x-slack-request-timestamp') ?? '';
  const isAuthentic = isSigned({
    secret: settings?.signingSecret,
    prefix: 'v0=',
    given: headerOf(request, 'x-slack-signature'),
    signed: [`v0:${at}:`, request.body],
  });
  // Digits alone: what is no number passes every comparison of ages.
  const isCurrent = /^\d{1,12}$/u.test(at) && Math.abs(Math.floor(request.nowMs / 1000) - Number(at)) <= windowSeconds;
  return isAuthentic && isCurrent;
}
