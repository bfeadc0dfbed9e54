import type { z } from 'zod';
import type { IgnoredReason, InboundItem, InboundMessage, InboundSender, MediaKind, MediaReference } from '../channel-adapter.ts';
import { ignored, media, messageOrEmpty, orNull, textOrNull } from '../inbound/items.ts';
import { list } from '../inbound/json.ts';
import type { ContactBook } from './contact-book.ts';
import { Button, Card, File, Interactive, Location, Message, Order, Product, Revoke, System, Text } from './wire.ts';

interface Around {
  readonly contacts: ContactBook;
  /** Digits of the number that was written to. */
  readonly ownNumber: string | undefined;
}

export function readMessage(json: unknown, { contacts, ownNumber }: Around): InboundItem[] {
  const message = Message.safeParse(json).data;
  if (message === undefined) return [ignored('unreadable')];
  const { id, type = '' } = message;
  // Nothing identifies a second delivery.
  if (id === undefined) return [ignored('no_id', type)];
  // Answered, it would be answered again, and so on for ever.
  if (isOwn(message, ownNumber)) return [ignored('echo', id)];
  if (type === 'system') return readSystem(message);
  const reason = silentTypes.get(type);
  if (reason !== undefined) return [ignored(reason, id)];
  if (type === 'revoke') return [readRevoke(message, id)];
  const content = contents.get(type)?.(message[type]);
  if (content === undefined) return [ignored('other_event', type)];
  const sender = senderOf(message, contacts);
  if (sender === undefined) return [ignored('no_sender', id)];
  return [messageOrEmpty({ ...envelopeOf(message, { id, sender }), ...content })];
}

function isOwn({ from }: Message, ownNumber: string | undefined): boolean {
  return from !== undefined && from !== '' && from === ownNumber;
}

function readRevoke(message: Message, id: string): InboundItem {
  const original = Revoke.safeParse(message['revoke']).data?.original_message_id;
  return original === undefined ? ignored('unreadable', id) : { kind: 'retraction', providerMessageId: original, messageRef: original };
}

function envelopeOf({ group_id, referral, context, timestamp }: Message, { id, sender }: Pick<InboundMessage, 'sender'> & { id: string }) {
  return {
    kind: 'message',
    providerMessageId: id,
    eventId: null,
    messageRef: id,
    sender,
    conversation: { id: group_id ?? sender.id, threadId: null, isGroup: group_id !== undefined },
    text: null,
    media: [],
    ...(referral !== undefined && { referral: { sourceType: orNull(referral.source_type), sourceId: orNull(referral.source_id) } }),
    replyTo: orNull(context?.id),
    sentAtMs: orNull(timestamp),
  } as const satisfies InboundMessage;
}

const silentTypes: ReadonlyMap<string, IgnoredReason> = new Map([
  ['reaction', 'reaction'],
  ['edit', 'edit'],
  ['unsupported', 'unsupported'],
]);

type Content = Partial<Pick<InboundMessage, 'text' | 'media' | 'location' | 'cards' | 'choice' | 'order'>>;

/** Maps, as types are the provider's words, and `constructor` is one that every object has. */
const contents: ReadonlyMap<string, (part: unknown) => Content> = new Map<string, (part: unknown) => Content>([
  ['text', reader(Text, ({ body }) => ({ text: textOrNull(body) }))],
  ['image', reader(File, (image) => fileContent('image', image))],
  ['video', reader(File, (video) => fileContent('video', video))],
  ['document', reader(File, (document) => fileContent('document', document))],
  ['audio', reader(File, (audio) => fileContent(audio.voice === true ? 'voice' : 'audio', audio))],
  ['sticker', reader(File, (sticker) => fileContent('sticker', sticker))],
  ['location', reader(Location, locationContent)],
  ['contacts', reader(list, cardContent)],
  ['interactive', reader(Interactive, interactiveContent)],
  ['button', reader(Button, ({ payload, text }) => choiceContent({ kind: 'button', id: payload ?? text, title: text }))],
  ['order', reader(Order, orderContent)],
]);

/** Nothing, when the part does not match its type. */
function reader<Part extends z.ZodType>(schema: Part, read: (part: z.output<Part>) => Content): (part: unknown) => Content {
  return (given) => {
    const part = schema.safeParse(given);
    return part.success ? read(part.data) : {};
  };
}

function fileContent(kind: MediaKind, file: File): Content {
  return { text: textOrNull(file.caption), media: [referenceTo(kind, file)] };
}

function referenceTo(kind: MediaKind, file: File): MediaReference {
  const { id, url = null, mime_type = null, filename = null, sha256 = null } = file;
  return media({ kind, id, url, mediaType: mime_type, fileName: filename, sha256 });
}

function locationContent(location: Location): Content {
  const { latitude, longitude, name = null, address = null } = location;
  return { location: { latitude, longitude, name, address } };
}

function cardContent(contacts: readonly unknown[]): Content {
  const cards = contacts.map((card) => Card.safeParse(card).data?.name.formatted_name).filter((name) => name !== undefined);
  return cards.length === 0 ? {} : { cards };
}

/** The object may be missing, with an error in its place. */
function interactiveContent({ button_reply, list_reply, nfm_reply }: Interactive): Content {
  if (button_reply !== undefined) return choiceContent({ kind: 'button_reply', ...button_reply });
  if (list_reply !== undefined) return choiceContent({ kind: 'list_reply', ...list_reply });
  // A filled-in form: what was filled in is all that there is.
  return choiceContent({ kind: 'nfm_reply', id: nfm_reply?.name, title: nfm_reply?.response_json });
}

interface Chosen {
  readonly kind: string;
  readonly id?: string | undefined;
  readonly title?: string | undefined;
}

function choiceContent({ kind, id, title }: Chosen): Content {
  const text = textOrNull(title) ?? textOrNull(id);
  return text === null ? {} : { text, choice: { kind, id: id ?? text, title: orNull(title) } };
}

function orderContent(order: Order): Content {
  const items = order.product_items.map((item) => Product.safeParse(item).data).filter((item) => item !== undefined);
  return {
    text: textOrNull(order.text),
    order: {
      catalogId: orNull(order.catalog_id),
      items: items.map(({ product_retailer_id, quantity = null }) => ({ productId: product_retailer_id, quantity })),
    },
  };
}

/**
 * The business-scoped id of a sender comes before the telephone number, which people who have a user name need not
 * show. Contacts are in another order than messages, and not always for the same senders.
 */
function senderOf({ from, from_user_id }: Message, contacts: ContactBook): InboundSender | undefined {
  const contact = contacts.contactOf([from, from_user_id]);
  const { wa_id, user_id, parent_user_id } = contact ?? {};
  const id = from_user_id ?? user_id ?? from ?? wa_id;
  if (id === undefined) return undefined;
  const ids = [from, wa_id, from_user_id, user_id, parent_user_id].filter((known) => known !== undefined);
  const aliases = [...new Set(ids)].filter((alias) => alias !== id);
  return { id, aliases, displayName: orNull(contact?.profile?.name), isExternal: false };
}

/** A sender with another number stays the same sender. Contacts are absent here. */
function readSystem(message: Message): InboundItem[] {
  const { from, from_user_id } = message;
  const system = System.safeParse(message['system']).data;
  const changes = [
    { from, to: system?.wa_id },
    { from: from_user_id, to: system?.user_id },
  ];
  const aliases = changes.flatMap(({ from: before, to }): InboundItem[] =>
    system?.type !== 'user_changed_number' || before === undefined || to === undefined || before === to
      ? []
      : [{ kind: 'alias', of: 'sender', from: before, to }],
  );
  return aliases.length === 0 ? [ignored('service_message', orNull(system?.type))] : aliases;
}
