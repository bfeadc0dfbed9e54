import { createHmac } from 'node:crypto';
import type { ChannelSettings, MessagingChannel } from '@concierge/contract';
import type { WebhookRequest } from '../channel-adapter.ts';
import { signTwilio } from '../twilio/index.ts';

/** A text that no provider brought, as a provider would bring it. */
export interface SimulatedMessage {
  /** No other message has it. */
  readonly id: string;
  readonly from: string;
  readonly name: string | null;
  readonly text: string;
  readonly nowMs: number;
  /** The address that is called; Twilio's signature is over it. */
  readonly url: string;
}

type Simulate<Channel extends MessagingChannel> = (message: SimulatedMessage, settings: ChannelSettings[Channel]) => SignedBody;
type SignedBody = Pick<WebhookRequest, 'body'> & { readonly headers: Readonly<Record<string, string>> };

const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));

/** A request with the provider's format and signature, made with the binding's own secrets. */
export const simulatedRequests: { readonly [Channel in MessagingChannel]: Simulate<Channel> } = {
  channel_a: simulateWhatsApp,
  channel_b: simulateMessenger,
  channel_c: simulateTelegram,
  channel_d: simulateSlack,
  channel_e: simulateTwilio,
};

function signByMeta(body: Buffer, appSecret: string): SignedBody {
  return { body, headers: { 'x-hub-signature-256': `sha256=${createHmac('sha256', appSecret).update(body).digest('hex')}` } };
}

function simulateWhatsApp({ id, from, name, text, nowMs }: SimulatedMessage, settings: ChannelSettings['channel_a']): SignedBody {
  const timestamp = String(Math.floor(nowMs / 1000));
  const value = {
    messaging_product: 'whatsapp',
    metadata: { phone_number_id: settings.phoneNumberId },
    contacts: [{ wa_id: from, ...(name !== null && { profile: { name } }) }],
    messages: [{ from, id, timestamp, type: 'text', text: { body: text } }],
  };
  const body = { object: 'whatsapp_business_account', entry: [{ id: 'simulated', changes: [{ field: 'messages', value }] }] };
  return signByMeta(json(body), settings.appSecret);
}

function simulateMessenger({ id, from, text, nowMs }: SimulatedMessage, settings: ChannelSettings['channel_b']): SignedBody {
  const message = { sender: { id: from }, recipient: { id: settings.pageId }, timestamp: nowMs, message: { mid: id, text } };
  const body = { object: 'page', entry: [{ id: settings.pageId, time: nowMs, messaging: [message] }] };
  return signByMeta(json(body), settings.appSecret);
}

function simulateTelegram({ id, from, name, text, nowMs }: SimulatedMessage, settings: ChannelSettings['channel_c']): SignedBody {
  const user = { id: from, is_bot: false, first_name: name ?? from };
  const message = { message_id: id, from: user, chat: { id: from, type: 'private' }, date: Math.floor(nowMs / 1000), text };
  return { body: json({ update_id: id, message }), headers: { 'x-telegram-bot-api-secret-token': settings.secretToken } };
}

function simulateSlack({ id, from, text, nowMs }: SimulatedMessage, settings: ChannelSettings['channel_d']): SignedBody {
  const event = { type: 'message', user: from, channel: from, channel_type: 'im', ts: id, text: escapeSlack(text) };
  const body = json({ type: 'event_callback', team_id: settings.teamId, api_app_id: settings.appId, event_id: id, event });
  const at = String(Math.floor(nowMs / 1000));
  const digest = createHmac('sha256', settings.signingSecret).update(`v0:${at}:`).update(body).digest('hex');
  return { body, headers: { 'x-slack-request-timestamp': at, 'x-slack-signature': `v0=${digest}` } };
}

/** As Slack itself writes what people type. */
function escapeSlack(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function simulateTwilio({ id, from, name, text, url }: SimulatedMessage, settings: ChannelSettings['channel_e']): SignedBody {
  const { accountSid, messagingServiceSid, from: to } = settings;
  const form = new URLSearchParams({
    MessageSid: id,
    AccountSid: accountSid,
    From: from,
    Body: text,
    ...(to !== undefined && { To: to }),
    ...(messagingServiceSid !== undefined && { MessagingServiceSid: messagingServiceSid }),
    ...(name !== null && { ProfileName: name }),
  });
  const body = Buffer.from(form.toString());
  return { body, headers: { 'x-twilio-signature': signTwilio({ url, body }, settings.authToken) } };
}
