import type { MessengerSettings } from '@concierge/contract';
import type { Delivery, InboundItem, InboundLocation, InboundMessage, MediaKind, MediaReference } from '../channel-adapter.ts';
import { eventName, ignored, orNull, withoutDuplicates, media, messageOrEmpty, textOrNull } from '../inbound/items.ts';
import { id, readJson, list, maybe, milliseconds } from '../inbound/json.ts';
import { z } from 'zod';

/** What is read of the webhooks of Messenger and Instagram. */

const Envelope = z.object({ object: maybe(z.string()), entry: list });

const Entry = z.object({ id: maybe(id), messaging: list, standby: list, changes: list });

const Attachment = z.object({
  type: maybe(z.string()),
  payload: maybe(
    z.object({
      url: maybe(z.string()),
      sticker_id: maybe(id),
      title: maybe(z.string()),
      coordinates: maybe(z.object({ lat: z.number(), long: z.number() })),
    }),
  ),
});
type Attachment = z.infer<typeof Attachment>;

const flag = maybe(z.boolean());

const Message = z.object({
  mid: maybe(id),
  text: maybe(z.string()),
  is_echo: flag,
  is_self: flag,
  is_deleted: flag,
  is_unsupported: flag,
  attachments: list,
  quick_reply: maybe(z.object({ payload: maybe(z.string()) })),
  reply_to: maybe(z.object({ mid: maybe(id), story: maybe(z.object({ id: maybe(id) })) })),
});
type Message = z.infer<typeof Message>;

const Item = z.object({
  sender: maybe(z.object({ id: maybe(id) })),
  timestamp: maybe(milliseconds),
  message: maybe(Message),
  postback: maybe(z.object({ mid: maybe(id), title: maybe(z.string()), payload: maybe(z.string()) })),
  delivery: maybe(z.object({ mids: list, watermark: maybe(milliseconds) })),
  read: maybe(z.object({ mid: maybe(id), watermark: maybe(milliseconds) })),
  reaction: z.unknown().optional(),
  message_edit: z.unknown().optional(),
});
type Item = z.infer<typeof Item>;

/** Pages and Instagram accounts: many items in a body, of any page that the same app serves. */
export function parseMessenger(body: Uint8Array, settings: MessengerSettings): Delivery {
  const json = readJson(body);
  if (json === undefined) return { kind: 'malformed' };
  const envelope = Envelope.safeParse(json).data;
  if (envelope === undefined || (envelope.object !== 'page' && envelope.object !== 'instagram'))
    return { kind: 'items', items: [ignored('other_event', envelope?.object ?? null)] };
  if (envelope.entry.length === 0) return { kind: 'items', items: [ignored('empty')] };
  const own = [settings.pageId, settings.instagramId].filter((known) => known !== undefined);
  return { kind: 'items', items: withoutDuplicates(envelope.entry.flatMap((entry) => readEntry(entry, own))) };
}

function readEntry(json: unknown, own: readonly string[]): InboundItem[] {
  const entry = Entry.safeParse(json).data;
  if (entry?.id === undefined) return [ignored('unreadable')];
  const account = entry.id;
  // The signature is the Meta app's, not the tenant's.
  if (!own.includes(account)) return [ignored('foreign')];
  const items = [
    ...entry.messaging.flatMap((item) => readItem(item, { account, own })),
    // Another app, or a staff member at the page, has this conversation.
    ...entry.standby.map(() => ignored('standby')),
    // The test button of the app's dashboard; its sender is made up.
    ...entry.changes.map(() => ignored('other_event', 'changes')),
  ];
  return items.length === 0 ? [ignored('empty')] : items;
}

/** Finds the account that the webhook is for: the one of the entry, among all of the binding's. */
interface Addressee {
  readonly account: string;
  readonly own: readonly string[];
}

function readItem(json: unknown, { account, own }: Addressee): InboundItem[] {
  const item = Item.safeParse(json).data;
  if (item === undefined) return [ignored('unreadable')];
  const { message, postback, sender, timestamp } = item;
  const senderId = sender?.id;
  if (isEcho(item, own)) return [ignored('echo', orNull(message?.mid))];
  if (senderId === undefined) return [ignored('no_sender')];
  const from = { senderId, account, sentAtMs: orNull(timestamp) };
  if (message !== undefined) return [readMessage(message, from)];
  if (postback !== undefined) return [readPostback(postback, from)];
  return readOther(item, json, senderId);
}

/** Instagram sends the account's own messages as well, and does not always name the app that sent them. */
function isEcho({ message, sender }: Item, own: readonly string[]): boolean {
  return message?.is_echo === true || message?.is_self === true || (sender?.id !== undefined && own.includes(sender.id));
}

function readOther(item: Item, json: unknown, senderId: string): InboundItem[] {
  const { delivery, read, timestamp: atMs = null } = item;
  const common = { kind: 'receipt', recipient: senderId, atMs, errorCodes: [] } as const;
  if (delivery !== undefined) {
    const mids = delivery.mids.map((mid) => id.safeParse(mid).data).filter((mid) => mid !== undefined);
    const named = mids.map((messageId): InboundItem => ({ ...common, messageId, upToMs: null, state: 'delivered' }));
    return named.length > 0 ? named : upTo({ ...common, messageId: null, state: 'delivered' }, delivery.watermark);
  }
  if (read !== undefined) {
    if (read.mid !== undefined) return [{ ...common, messageId: read.mid, upToMs: null, state: 'read' }];
    return upTo({ ...common, messageId: null, state: 'read' }, read.watermark);
  }
  if (item.reaction !== undefined) return [ignored('reaction')];
  if (item.message_edit !== undefined) return [ignored('edit')];
  return [ignored('other_event', typeof json === 'object' && json !== null ? eventName(json, ['sender', 'recipient', 'timestamp']) : null)];
}

type Receipt = Extract<InboundItem, { kind: 'receipt' }>;

function upTo(receipt: Omit<Receipt, 'upToMs'>, watermark: number | undefined): InboundItem[] {
  return watermark === undefined ? [ignored('unreadable', receipt.state)] : [{ ...receipt, upToMs: watermark }];
}

interface From {
  readonly senderId: string;
  /** The page, or the Instagram account beside it. */
  readonly account: string;
  readonly sentAtMs: number | null;
}

function readMessage(message: Message, from: From): InboundItem {
  const { mid } = message;
  if (mid === undefined) return ignored('no_id');
  // It has the id of the message that is taken back.
  if (message.is_deleted === true) return { kind: 'retraction', providerMessageId: mid, messageRef: mid };
  if (message.is_unsupported === true) return ignored('unsupported', mid);
  const attachments = message.attachments.map((attachment) => Attachment.safeParse(attachment).data).filter((known) => known !== undefined);
  const location = attachments.map(readLocation).find((found) => found !== undefined);
  const text = textOrNull(message.text);
  const payload = message.quick_reply?.payload;
  const story = message.reply_to?.story?.id;
  return messageOrEmpty({
    ...buildEnvelope(mid, from),
    text,
    media: attachments.map(readMedia).filter((reference) => reference !== undefined),
    ...(location !== undefined && { location }),
    ...(payload !== undefined && { choice: { kind: 'quick_reply', id: payload, title: text } }),
    replyTo: message.reply_to?.mid ?? (story === undefined ? null : `story:${story}`),
  });
}

/** A pressed button. It may come without an id; pressed twice in one millisecond it is pressed once. */
function readPostback(postback: NonNullable<Item['postback']>, from: From): InboundItem {
  const { mid, title, payload } = postback;
  const text = textOrNull(title) ?? textOrNull(payload);
  if (text === null) return ignored('empty', 'postback');
  const key = mid ?? `postback:${from.senderId}:${String(from.sentAtMs)}:${payload ?? text}`;
  const choice = { kind: 'postback', id: payload ?? text, title: title ?? null };
  return { ...buildEnvelope(key, from), text, media: [], choice, replyTo: null };
}

function buildEnvelope(mid: string, { senderId, account, sentAtMs }: From) {
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
function readMediaKind({ type, payload }: Attachment): MediaKind | undefined {
  return type === 'image' && payload?.sticker_id !== undefined ? 'sticker' : kinds.get(type ?? '');
}

function readMedia(attachment: Attachment): MediaReference | undefined {
  const kind = readMediaKind(attachment);
  const { url = null, sticker_id = null } = attachment.payload ?? {};
  return kind === undefined || (url === null && sticker_id === null) ? undefined : media({ kind, id: sticker_id, url });
}

function readLocation({ type, payload }: Attachment): InboundLocation | undefined {
  if (type !== 'location' || payload?.coordinates === undefined) return undefined;
  const { lat, long } = payload.coordinates;
  return { latitude: lat, longitude: long, name: payload.title ?? null, address: null };
}
