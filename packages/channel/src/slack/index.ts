import type { SlackSettings } from '@concierge/contract';
import type { ChannelAdapter, WebhookRequest } from '../channel-adapter.ts';
import { readHeader, isSigned } from '../inbound/signature.ts';
import { mediaSources, SlackSender, slackRules } from './send.ts';
import { parseSlack } from './parse.ts';

/** How far Slack's clock and ours may be apart, in both directions: older ones are replays. */
const windowSeconds = 300;

/** Slack Events API and Web API. Its handshake comes by POST and is signed: `parse` finds the challenge. */
export const slack: ChannelAdapter<SlackSettings> = {
  verify: verifySlack,
  parse: parseSlack,
  selfId: ({ teamId }) => teamId,
  openSender: (settings, options) => new SlackSender(settings, options),
  allRules: [slackRules],
  rulesFor: () => slackRules,
  mediaSources,
};

function verifySlack(request: WebhookRequest, settings: SlackSettings | undefined): boolean {
  const at = readHeader(request, 'x-slack-request-timestamp') ?? '';
  const isAuthentic = isSigned({
    secret: settings?.signingSecret,
    prefix: 'v0=',
    given: readHeader(request, 'x-slack-signature'),
    signed: [`v0:${at}:`, request.body],
  });
  // Digits alone: what is no number passes every comparison of ages.
  const isCurrent = /^\d{1,12}$/u.test(at) && Math.abs(Math.floor(request.nowMs / 1000) - Number(at)) <= windowSeconds;
  return isAuthentic && isCurrent;
}
