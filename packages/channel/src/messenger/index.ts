import type { MessengerSettings } from '@concierge/contract';
import type { ChannelAdapter } from '../channel-adapter.ts';
import { isSignedByMeta, metaHandshake } from '../meta/meta.ts';
import { plainDialect, utf16Units, utf8Bytes } from '../outbound/dialect.ts';
import { DAY_WINDOW_MS, type SendingRules } from '../outbound/sending-rules.ts';
import { parseMessenger } from './parse.ts';
import { mediaSources, MessengerSender } from './send.ts';

const messengerRules: SendingRules = {
  name: 'messenger',
  dialect: plainDialect({ maxLength: 2000, count: utf16Units }),
  pace: () => ({ conversationIntervalMs: 500, conversationBurst: 2, bindingPerSecond: 300 }),
  replyWindowMs: DAY_WINDOW_MS,
};

const instagramRules: SendingRules = {
  name: 'instagram',
  dialect: plainDialect({ maxLength: 1000, count: utf8Bytes }),
  pace: () => ({ conversationIntervalMs: 500, conversationBurst: 2, bindingPerSecond: 100 }),
  replyWindowMs: DAY_WINDOW_MS,
};

/** Messenger, and Instagram through the page that it is linked with. */
export const messenger: ChannelAdapter<MessengerSettings> = {
  handshake: metaHandshake,
  verify: isSignedByMeta,
  parse: parseMessenger,
  selfId: ({ pageId }) => pageId,
  openSender: (settings, options) => new MessengerSender(settings, options),
  allRules: [messengerRules, instagramRules],
  /**
   * An id does not show its channel; the account that was written to does. A conversation that names none is rendered
   * for Instagram, which Messenger accepts, too.
   */
  rulesFor: ({ identifiers = {}, account }) =>
    identifiers['instagramId'] === undefined || account === identifiers['pageId'] ? messengerRules : instagramRules,
  hasRulesPerAccount: ({ instagramId }) => instagramId !== undefined,
  mediaSources,
};
