import type { ChannelSettings } from '@concierge/contract';
import type { InboundItem, MediaKind, MediaReference } from '../channel-adapter.ts';
import { ignored, media, messageOrEmpty, orNull, textOrNull } from '../inbound/items.ts';
import { mediaAccess } from '../media-sources.ts';
import { mediaSources } from './media-sources.ts';
import { mentions, plainText } from './text.ts';
import { Event, File, type Envelope } from './wire.ts';

type Settings = ChannelSettings['channel_d'];

/** Kinds of message that carry a user's text; all the others report what happened in a channel. */
const spoken: readonly (string | undefined)[] = [undefined, 'file_share', 'me_message', 'thread_broadcast'];

export function readEvent(envelope: Envelope, settings: Settings): InboundItem {
  const ref = orNull(envelope.event_id);
  const event = Event.safeParse(envelope.event).data;
  if (event === undefined) return ignored('unreadable', ref);
  switch (event.type) {
    case 'message':
    case 'app_mention':
      return readMessage(event, { settings, ref });
    case 'app_uninstalled':
      return { kind: 'revocation', reason: event.type };
    case 'tokens_revoked':
      // A user who takes back their own consent leaves the bot as it is.
      return (event.tokens?.bot.length ?? 0) > 0 ? { kind: 'revocation', reason: event.type } : ignored('other_event', event.type);
    case 'reaction_added':
    case 'reaction_removed':
      return ignored('reaction', ref);
    default:
      return ignored('other_event', event.type);
  }
}

interface Received {
  readonly settings: Settings;
  readonly ref: string | null;
}

function readMessage(event: Event, { settings, ref }: Received): InboundItem {
  const { subtype, channel, ts, user } = event;
  if (subtype === 'message_deleted' && channel !== undefined && event.deleted_ts !== undefined)
    return {
      kind: 'retraction',
      providerMessageId: messageIdOf(settings, channel, event.deleted_ts),
      messageRef: `${channel}/${event.deleted_ts}`,
    };
  if (isFromBot(event, settings)) return ignored('from_bot', ref);
  if (subtype === 'message_changed') return ignored('edit', ref);
  if (!spoken.includes(subtype)) return ignored('service_message', orNull(subtype));
  if (user === undefined) return ignored('no_sender', ref);
  if (channel === undefined || ts === undefined) return ignored('no_id', ref);
  const isDirect = isDirectChannel(channel, event.channel_type);
  if (!isDirect && !isAddressed(event, settings.botUserId)) return ignored('not_addressed', ref);
  return messageOrEmpty({
    kind: 'message',
    providerMessageId: messageIdOf(settings, channel, ts),
    eventId: ref,
    messageRef: `${channel}/${ts}`,
    sender: { id: user, aliases: [], displayName: null, isExternal: isExternal(event, settings) },
    conversation: { id: channel, threadId: orNull(event.thread_ts), isGroup: !isDirect },
    ...contentOf(event, settings),
    replyTo: null,
    sentAtMs: millisecondsOf(ts),
  });
}

/** A mention in a channel comes twice, as two events with two ids. This is what both have in common. */
function messageIdOf({ teamId }: Settings, channel: string, ts: string): string {
  return `${teamId}:${channel}:${ts}`;
}

function contentOf({ text = '', files }: Event, { botUserId }: Settings) {
  return { text: textOrNull(plainText(text, botUserId)), media: files.flatMap(referenceTo) };
}

/** Mentions come without the type of their channel. */
function isDirectChannel(channel: string, type: string | undefined): boolean {
  return type === undefined ? channel.startsWith('D') : type === 'im';
}

function isExternal({ user_team, source_team }: Event, { teamId }: Settings): boolean {
  return (user_team ?? source_team ?? teamId) !== teamId;
}

/** The bot's own messages come back without a subtype; other bots would be answered for ever. */
function isFromBot(event: Event, { botUserId }: Settings): boolean {
  const { bot_id, bot_profile, subtype, user } = event;
  const isMarked = (bot_id ?? undefined) !== undefined || (bot_profile ?? undefined) !== undefined || subtype === 'bot_message';
  return isMarked || user === botUserId || user === 'USLACKBOT';
}

function isAddressed({ type, text = '', parent_user_id }: Event, botUserId: string): boolean {
  return type === 'app_mention' || parent_user_id === botUserId || mentions(text, botUserId);
}

/** The time is an id: its digits are not all a number could hold, so it is read as text. */
function millisecondsOf(ts: string): number | null {
  const [, seconds, fraction = ''] = /^(\d{1,12})(?:\.(\d*))?$/u.exec(ts) ?? [];
  return seconds === undefined ? null : Number(seconds) * 1000 + Number(fraction.slice(0, 3).padEnd(3, '0'));
}

function referenceTo(json: unknown): MediaReference[] {
  const file = File.safeParse(json).data;
  if (file === undefined || absentModes.includes(file.mode) || file.is_external === true) return [];
  const { id, name, mimetype, size } = file;
  const url = file.url_private_download ?? file.url_private;
  const known = url !== undefined && mediaAccess(mediaSources, url) !== undefined ? url : null;
  return [media({ kind: kindOf(mimetype), id, url: known, mediaType: orNull(mimetype), fileName: orNull(name), bytes: orNull(size) })];
}

/**
 * Deleted, beyond what the workspace pays for, or stored elsewhere: for the last Slack has only the address that its
 * owner wrote down.
 */
const absentModes: readonly (string | undefined)[] = ['tombstone', 'hidden_by_limit', 'external'];

function kindOf(mediaType: string | undefined): MediaKind {
  if (mediaType === undefined) return 'unknown';
  const [family] = mediaType.split('/');
  return family === 'image' || family === 'video' || family === 'audio' ? family : 'document';
}
