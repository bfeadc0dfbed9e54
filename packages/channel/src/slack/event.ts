import type { SlackSettings } from '@concierge/contract';
import type { InboundItem, MediaKind, MediaReference } from '../channel-adapter.ts';
import { ignored, media, messageOrEmpty, orNull, textOrNull } from '../inbound/items.ts';
import { mediaAccess } from '../outbound/fetch-file.ts';
import { mediaSources } from './send.ts';
import { Event, File, type Envelope } from './wire.ts';

/** Kinds of message that carry a user's text; all the others report what happened in a channel. */
const spoken: readonly (string | undefined)[] = [undefined, 'file_share', 'me_message', 'thread_broadcast'];

export function readEvent(envelope: Envelope, settings: SlackSettings): InboundItem {
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
  readonly settings: SlackSettings;
  readonly ref: string | null;
}

function readMessage(event: Event, { settings, ref }: Received): InboundItem {
  const { subtype, channel, ts, user } = event;
  if (subtype === 'message_deleted' && channel !== undefined && event.deleted_ts !== undefined)
    return {
      kind: 'retraction',
      providerMessageId: buildMessageId(settings, channel, event.deleted_ts),
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
    providerMessageId: buildMessageId(settings, channel, ts),
    eventId: ref,
    messageRef: `${channel}/${ts}`,
    sender: { id: user, aliases: [], displayName: null, isExternal: isExternal(event, settings) },
    conversation: { id: channel, threadId: orNull(event.thread_ts), isGroup: !isDirect },
    ...readContent(event, settings),
    replyTo: null,
    sentAtMs: toMilliseconds(ts),
  });
}

/** A mention in a channel comes twice, as two events with two ids. This is what both have in common. */
function buildMessageId({ teamId }: SlackSettings, channel: string, ts: string): string {
  return `${teamId}:${channel}:${ts}`;
}

function readContent({ text = '', files }: Event, { botUserId }: SlackSettings) {
  return { text: textOrNull(plainText(text, botUserId)), media: files.flatMap(readFile) };
}

/** Mentions come without the type of their channel. */
function isDirectChannel(channel: string, type: string | undefined): boolean {
  return type === undefined ? channel.startsWith('D') : type === 'im';
}

function isExternal({ user_team, source_team }: Event, { teamId }: SlackSettings): boolean {
  return (user_team ?? source_team ?? teamId) !== teamId;
}

/** The bot's own messages come back without a subtype; other bots would be answered for ever. */
function isFromBot(event: Event, { botUserId }: SlackSettings): boolean {
  const { bot_id, bot_profile, subtype, user } = event;
  const isMarked = (bot_id ?? undefined) !== undefined || (bot_profile ?? undefined) !== undefined || subtype === 'bot_message';
  return isMarked || user === botUserId || user === 'USLACKBOT';
}

function isAddressed({ type, text = '', parent_user_id }: Event, botUserId: string): boolean {
  return type === 'app_mention' || parent_user_id === botUserId || mentions(text, botUserId);
}

/** The time is an id: its digits are not all a number could hold, so it is read as text. */
function toMilliseconds(ts: string): number | null {
  const [, seconds, fraction = ''] = /^(\d{1,12})(?:\.(\d*))?$/u.exec(ts) ?? [];
  return seconds === undefined ? null : Number(seconds) * 1000 + Number(fraction.slice(0, 3).padEnd(3, '0'));
}

function readFile(json: unknown): MediaReference[] {
  const file = File.safeParse(json).data;
  if (file === undefined || absentModes.includes(file.mode) || file.is_external === true) return [];
  const { id, name, mimetype, size } = file;
  const url = file.url_private_download ?? file.url_private;
  const known = url !== undefined && mediaAccess(mediaSources, url) !== undefined ? url : null;
  return [media({ kind: toMediaKind(mimetype), id, url: known, mediaType: orNull(mimetype), fileName: orNull(name), bytes: orNull(size) })];
}

/**
 * Deleted, beyond what the workspace pays for, or stored elsewhere: for the last Slack has only the address that its
 * owner wrote down.
 */
const absentModes: readonly (string | undefined)[] = ['tombstone', 'hidden_by_limit', 'external'];

function toMediaKind(mediaType: string | undefined): MediaKind {
  if (mediaType === undefined) return 'unknown';
  const [family] = mediaType.split('/');
  return family === 'image' || family === 'video' || family === 'audio' ? family : 'document';
}

/** Slack's markup as a reader sees it. Entities are undone once, `&` last: a typed `&lt;` stays that. */
function plainText(text: string, ownUserId: string): string {
  // bounded-expression: the id is taken as it is, and what follows it ends at the next angle bracket
  const own = new RegExp(String.raw`<@${RegExp.escape(ownUserId)}(?:\|[^<>]*)?>`, 'gu');
  return text
    .replace(own, '')
    .replace(/<([^<>]+)>/gu, (_all, link: string) => readable(link))
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&')
    .trim();
}

function mentions(text: string, userId: string): boolean {
  return text.includes(`<@${userId}>`) || text.includes(`<@${userId}|`);
}

/** `@U1`, `#general`, `@here`, `label (address)`. */
function readable(link: string): string {
  const bar = link.indexOf('|');
  const target = bar === -1 ? link : link.slice(0, bar);
  const label = bar === -1 ? undefined : link.slice(bar + 1);
  const name = target.slice(1);
  switch (target.charAt(0)) {
    case '@':
    case '#':
      return `${target.charAt(0)}${label ?? name}`;
    case '!':
      return label ?? `@${name.replace(/^subteam\^/u, '')}`;
    default:
      return label === undefined || label === target ? target : `${label} (${target})`;
  }
}
