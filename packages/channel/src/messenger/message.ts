import type { InboundItem, InboundLocation, InboundMessage, MediaKind, MediaReference } from '../channel-adapter.ts';
import { ignored, media, messageOrEmpty, textOrNull } from '../inbound/items.ts';
import { Attachment, type Item, type Message } from './wire.ts';

interface From {
  readonly senderId: string;
  /** The page, or the Instagram account beside it. */
  readonly account: string;
  readonly sentAtMs: number | null;
}

export function readMessage(message: Message, from: From): InboundItem {
  const { mid } = message;
  if (mid === undefined) return ignored('no_id');
  // It has the id of the message that is taken back.
  if (message.is_deleted === true) return { kind: 'retraction', providerMessageId: mid, messageRef: mid };
  if (message.is_unsupported === true) return ignored('unsupported', mid);
  const attachments = message.attachments.map((attachment) => Attachment.safeParse(attachment).data).filter((known) => known !== undefined);
  const location = attachments.map(locationOf).find((place) => place !== undefined);
  const text = textOrNull(message.text);
  const payload = message.quick_reply?.payload;
  const story = message.reply_to?.story?.id;
  return messageOrEmpty({
    ...envelopeOf(mid, from),
    text,
    media: attachments.map(referenceTo).filter((reference) => reference !== undefined),
    ...(location !== undefined && { location }),
    ...(payload !== undefined && { choice: { kind: 'quick_reply', id: payload, title: text } }),
    replyTo: message.reply_to?.mid ?? (story === undefined ? null : `story:${story}`),
  });
}

/** A pressed button. It may come without an id; pressed twice in one millisecond it is pressed once. */
export function readPostback(postback: NonNullable<Item['postback']>, from: From): InboundItem {
  const { mid, title, payload } = postback;
  const text = textOrNull(title) ?? textOrNull(payload);
  if (text === null) return ignored('empty', 'postback');
  const key = mid ?? `postback:${from.senderId}:${String(from.sentAtMs)}:${payload ?? text}`;
  const choice = { kind: 'postback', id: payload ?? text, title: title ?? null };
  return { ...envelopeOf(key, from), text, media: [], choice, replyTo: null };
}

function envelopeOf(mid: string, { senderId, account, sentAtMs }: From) {
  return {
    kind: 'message',
    providerMessageId: mid,
    eventId: null,
    messageRef: mid,
    sender: { id: senderId, aliases: [], displayName: null, isExternal: false },
    conversation: { id: senderId, threadId: null, isGroup: false, account },
    sentAtMs,
  } as const satisfies Partial<InboundMessage>;
}

/** Previews of links, mentions in stories and templates are left out: they add nothing to the text. */
const kinds: ReadonlyMap<string, MediaKind> = new Map([
  ['image', 'image'],
  ['video', 'video'],
  ['audio', 'audio'],
  ['file', 'document'],
  ['sticker', 'sticker'],
  ['share', 'share'],
  ['reel', 'share'],
  ['ig_reel', 'share'],
  ['post', 'share'],
  ['ig_post', 'share'],
]);

/** Stickers were images until August 2026. */
function kindOf({ type, payload }: Attachment): MediaKind | undefined {
  return type === 'image' && payload?.sticker_id !== undefined ? 'sticker' : kinds.get(type ?? '');
}

function referenceTo(attachment: Attachment): MediaReference | undefined {
  const kind = kindOf(attachment);
  const { url = null, sticker_id = null } = attachment.payload ?? {};
  return kind === undefined || (url === null && sticker_id === null) ? undefined : media({ kind, id: sticker_id, url });
}

function locationOf({ type, payload }: Attachment): InboundLocation | undefined {
  if (type !== 'location' || payload?.coordinates === undefined) return undefined;
  const { lat, long } = payload.coordinates;
  return { latitude: lat, longitude: long, name: payload.title ?? null, address: null };
}
