import type { WhatsAppSettings } from '@concierge/contract';
import type { Delivery, InboundItem, IgnoredReason, InboundMessage, InboundSender, MediaKind, MediaReference } from '../channel-adapter.ts';
import { ignored, orNull, withoutDuplicates, media, messageOrEmpty, textOrNull } from '../inbound/items.ts';
import { readJson, list } from '../inbound/json.ts';
import {
  Change,
  Contact,
  Entry,
  Envelope,
  ProviderError,
  Status,
  UserIdUpdate,
  Value,
  Button,
  Card,
  File,
  Interactive,
  Location,
  Message,
  Order,
  Product,
  Revoke,
  System,
  Text,
} from './wire.ts';
import type { z } from 'zod';

/**
 * Every item of every entry: up to a thousand messages and receipts come in one body, of several numbers and in any
 * order.
 */
export function parseWhatsApp(body: Uint8Array, settings: WhatsAppSettings): Delivery {
  const json = readJson(body);
  if (json === undefined) return { kind: 'malformed' };
  const envelope = Envelope.safeParse(json);
  if (!envelope.success || envelope.data.object !== 'whatsapp_business_account')
    return { kind: 'items', items: [ignored('other_event', envelope.data?.object ?? null)] };
  const changes = envelope.data.entry.flatMap((entry) => Entry.safeParse(entry).data?.changes ?? []);
  if (changes.length === 0) return { kind: 'items', items: [ignored('empty')] };
  return { kind: 'items', items: withoutDuplicates(changes.flatMap((change) => readChange(change, settings.phoneNumberId))) };
}

function readChange(json: unknown, phoneNumberId: string): InboundItem[] {
  const change = Change.safeParse(json).data;
  const value = Value.safeParse(change?.value).data;
  if (change === undefined || value === undefined) return [ignored('unreadable')];
  const { field = null } = change;
  if (field === 'smb_message_echoes') return [ignored('echo', field)];
  if (field !== 'messages' && field !== 'user_id_update') return [ignored('other_event', field)];
  // The signature is the Meta app's, not the tenant's: a body for another number of the same app verifies as well.
  if (value.metadata?.phone_number_id !== phoneNumberId) return [ignored('foreign', field)];
  const items = field === 'messages' ? readValue(value) : value.user_id_update.map(readUserIdUpdate);
  return items.length === 0 ? [ignored('empty', field)] : items;
}

function readValue(value: Value): InboundItem[] {
  const contacts = new ContactBook(
    value.contacts.map((contact) => Contact.safeParse(contact).data).filter((contact) => contact !== undefined),
  );
  const ownNumber = value.metadata?.display_phone_number?.replaceAll(/\D/gu, '');
  const messages = value.messages.flatMap((message) => readMessage(message, { contacts, ownNumber }));
  const items = [...messages, ...value.statuses.map(readStatus)];
  if (items.length > 0) return items;
  return value.errors.map((error) => ignored('provider_error', orNull(ProviderError.safeParse(error).data?.code)));
}

type Value = ReturnType<typeof Value.parse>;

function readStatus(json: unknown): InboundItem {
  const status = Status.safeParse(json).data;
  if (status === undefined) return ignored('other_event', 'status');
  return {
    kind: 'receipt',
    messageId: status.id,
    upToMs: null,
    recipient: orNull(status.recipient_user_id ?? status.recipient_id),
    state: status.status,
    atMs: orNull(status.timestamp),
    errorCodes: status.errors.map((error) => ProviderError.safeParse(error).data?.code).filter((code) => code !== undefined),
    ...(status.biz_opaque_callback_data !== undefined && { reference: status.biz_opaque_callback_data }),
  };
}

function readUserIdUpdate(json: unknown): InboundItem {
  const update = UserIdUpdate.safeParse(json).data;
  if (update === undefined) return ignored('unreadable', 'user_id_update');
  return { kind: 'alias', of: 'sender', from: update.user_id.previous, to: update.user_id.current };
}

/**
 * The contacts that a body contains, by either of their ids: contacts and messages may be too many for a linear search.
 */
export class ContactBook {
  readonly #contacts: readonly Contact[];
  /** The first index of each id. */
  readonly #indexes = new Map<string, number>();

  constructor(contacts: readonly Contact[]) {
    this.#contacts = contacts;
    for (const [index, { wa_id, user_id }] of contacts.entries()) {
      for (const id of [wa_id, user_id]) if (id !== undefined && !this.#indexes.has(id)) this.#indexes.set(id, index);
    }
  }

  /** The contact who wrote the message; for a message without a sender the only contact there is. */
  findContact(senderIds: readonly (string | undefined)[]): Contact | undefined {
    const ids = senderIds.filter((known) => known !== undefined);
    if (ids.length === 0) return this.#contacts.length === 1 ? this.#contacts[0] : undefined;
    const indexes = ids.map((id) => this.#indexes.get(id)).filter((index) => index !== undefined);
    return indexes.length === 0 ? undefined : this.#contacts[Math.min(...indexes)];
  }
}

interface Around {
  readonly contacts: ContactBook;
  /** Digits of the number that was written to. */
  readonly ownNumber: string | undefined;
}

function readMessage(json: unknown, { contacts, ownNumber }: Around): InboundItem[] {
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
  const sender = readSender(message, contacts);
  if (sender === undefined) return [ignored('no_sender', id)];
  return [messageOrEmpty({ ...buildEnvelope(message, { id, sender }), ...content })];
}

function isOwn({ from }: Message, ownNumber: string | undefined): boolean {
  return from !== undefined && from !== '' && from === ownNumber;
}

function readRevoke(message: Message, id: string): InboundItem {
  const original = Revoke.safeParse(message['revoke']).data?.original_message_id;
  return original === undefined ? ignored('unreadable', id) : { kind: 'retraction', providerMessageId: original, messageRef: original };
}

function buildEnvelope(
  { group_id, referral, context, timestamp }: Message,
  { id, sender }: Pick<InboundMessage, 'sender'> & { id: string },
) {
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
function readSender({ from, from_user_id }: Message, contacts: ContactBook): InboundSender | undefined {
  const contact = contacts.findContact([from, from_user_id]);
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
