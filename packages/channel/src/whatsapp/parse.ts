import type { ChannelSettings } from '@concierge/contract';
import type { Delivery, InboundItem } from '../channel-adapter.ts';
import { ignored, orNull, withoutDuplicates } from '../inbound/items.ts';
import { readJson } from '../inbound/json.ts';
import { ContactBook } from './contact-book.ts';
import { readMessage } from './message.ts';
import { Change, Contact, Entry, Envelope, ProviderError, Status, UserIdUpdate, Value } from './wire.ts';

/**
 * Every item of every entry: up to a thousand messages and receipts come in one body, of several numbers and in any
 * order.
 */
export function parseWhatsApp(body: Uint8Array, settings: ChannelSettings['channel_a']): Delivery {
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
    ...(status.biz_opaque_callback_data !== undefined && { mark: status.biz_opaque_callback_data }),
  };
}

function readUserIdUpdate(json: unknown): InboundItem {
  const update = UserIdUpdate.safeParse(json).data;
  if (update === undefined) return ignored('unreadable', 'user_id_update');
  return { kind: 'alias', of: 'sender', from: update.user_id.previous, to: update.user_id.current };
}
