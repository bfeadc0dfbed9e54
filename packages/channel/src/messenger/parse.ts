import type { ChannelSettings } from '@concierge/contract';
import type { Delivery, InboundItem } from '../channel-adapter.ts';
import { eventName, ignored, orNull, withoutDuplicates } from '../inbound/items.ts';
import { id, readJson } from '../inbound/json.ts';
import { readMessage, readPostback } from './message.ts';
import { Entry, Envelope, Item } from './wire.ts';

/** Pages and Instagram accounts: many items in a body, of any page that the same app serves. */
export function parseMessenger(body: Uint8Array, settings: ChannelSettings['channel_b']): Delivery {
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
