import type { ReceiptState, TwilioSettings } from '@concierge/contract';
import type { Delivery, InboundItem, InboundMessage, MediaKind, MediaReference } from '../channel-adapter.ts';
import { ignored, media, messageOrEmpty, orNull, textOrNull } from '../inbound/items.ts';
import { storable } from '../inbound/json.ts';
import { readReference, Callback } from './wire.ts';

type Fields = Readonly<Record<string, string>>;

/** One form: a message, or a receipt for one of ours. */
export function parseTwilio(body: Uint8Array, settings: TwilioSettings, url = ''): Delivery {
  const form = new URLSearchParams(new TextDecoder().decode(body));
  const fields = Object.fromEntries([...form].map(([name, value]) => [name, storable(value)]));
  const callback = Callback.safeParse(fields).data;
  return callback === undefined
    ? { kind: 'malformed' }
    : { kind: 'items', items: [readCallback({ callback, fields, reference: readReference(url) }, settings)] };
}

interface Received {
  readonly callback: Callback;
  readonly fields: Fields;
  readonly reference: string | null;
}

function readCallback({ callback, fields, reference }: Received, settings: TwilioSettings): InboundItem {
  const { MessageSid: id, MessageStatus: status } = callback;
  if (id === undefined) return ignored('no_id');
  // The signature is the account's, whose numbers may be bound by many tenants.
  if (!isOurs(callback, settings)) return ignored('foreign', id);
  return status === undefined ? readMessage(callback, fields, id) : readReceipt(callback, { status, messageId: id, reference });
}

function isOurs({ AccountSid, MessagingServiceSid, MessageStatus, From, To }: Callback, settings: TwilioSettings): boolean {
  if (AccountSid !== settings.accountSid) return false;
  const isService = settings.messagingServiceSid !== undefined && MessagingServiceSid === settings.messagingServiceSid;
  return isService || (settings.from !== undefined && (MessageStatus === undefined ? To : From) === settings.from);
}

function readMessage(callback: Callback, fields: Fields, id: string): InboundItem {
  const { From: from, OptOutType: optOut } = callback;
  if (from === undefined) return ignored('no_sender', id);
  if (optOut === 'STOP') return { kind: 'unreachable', conversationId: from };
  if (optOut === 'START') return { kind: 'reachable', conversationId: from };
  // Twilio has answered it.
  if (optOut !== undefined) return ignored('service_message', optOut);
  return messageOrEmpty({
    kind: 'message',
    providerMessageId: id,
    eventId: null,
    messageRef: id,
    sender: { id: from, aliases: [], displayName: orNull(callback.ProfileName), isExternal: false },
    conversation: { id: from, threadId: null, isGroup: false },
    media: readMedia(callback, fields),
    ...readContent(callback),
    replyTo: orNull(callback.OriginalRepliedMessageSid),
    // Twilio does not send the time of writing.
    sentAtMs: null,
  });
}

function readContent(callback: Callback): Pick<InboundMessage, 'text' | 'location' | 'choice' | 'referral'> {
  const { Latitude: latitude, Longitude: longitude, ReferralSourceType, ReferralSourceId } = callback;
  const choice = readChoice(callback);
  const isPlace = latitude !== undefined && longitude !== undefined;
  return {
    text: textOrNull(callback.Body) ?? textOrNull(choice?.title ?? undefined),
    ...(isPlace && { location: { latitude, longitude, name: orNull(callback.Label), address: orNull(callback.Address) } }),
    ...(choice !== undefined && { choice }),
    ...((ReferralSourceType ?? ReferralSourceId) !== undefined && {
      referral: { sourceType: orNull(ReferralSourceType), sourceId: orNull(ReferralSourceId) },
    }),
  };
}

function readChoice({ ButtonPayload, ButtonText, ListId, ListTitle }: Callback): InboundMessage['choice'] {
  const button = ButtonPayload ?? ButtonText;
  if (button !== undefined) return { kind: 'button', id: button, title: orNull(ButtonText) };
  return ListId === undefined ? undefined : { kind: 'list', id: ListId, title: orNull(ListTitle) };
}

function readMedia({ NumMedia: count = 0 }: Callback, fields: Fields): MediaReference[] {
  return Array.from({ length: count }, (_, index) => String(index)).flatMap((index) => {
    const url = fields[`MediaUrl${index}`];
    const mediaType = orNull(fields[`MediaContentType${index}`]);
    return url === undefined ? [] : [media({ kind: toMediaKind(mediaType ?? ''), url, mediaType })];
  });
}

function toMediaKind(mediaType: string): MediaKind {
  const family = mediaType.split('/', 1)[0];
  return family === 'image' || family === 'video' || family === 'audio' ? family : 'document';
}

const states: ReadonlyMap<string, ReceiptState> = new Map([
  ['sent', 'sent'],
  ['delivered', 'delivered'],
  ['read', 'read'],
  ['undelivered', 'failed'],
  ['failed', 'failed'],
]);

interface Reported {
  readonly status: string;
  readonly messageId: string;
  readonly reference: string | null;
}

function readReceipt({ To, ErrorCode }: Callback, { status, messageId, reference }: Reported): InboundItem {
  const state = states.get(status);
  if (state === undefined) return ignored('other_event', status);
  const errorCodes = state === 'failed' && ErrorCode !== undefined ? [ErrorCode] : [];
  const about = { messageId, upToMs: null, recipient: orNull(To), atMs: null, errorCodes };
  return { kind: 'receipt', ...about, state, ...(reference !== null && { reference }) };
}
