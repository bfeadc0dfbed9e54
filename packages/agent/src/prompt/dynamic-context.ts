import { limits, truncate, type UploadRef, type UserMessage } from '@concierge/contract';
import { toMessageText, type UserMessageInput } from './user-message.ts';

export interface UserTurn {
  /** At least one; several when they are answered together. */
  readonly messages: readonly UserMessageInput[];
  /** What the message states about HEARTBEAT; undefined: nothing. */
  readonly heartbeat?: HeartbeatNews;
  /** IANA name; UTC when the tenant has none. */
  readonly timezone: string | undefined;
  readonly now: Date;
  /** Another turn has asked for this one. */
  readonly isDelegated?: boolean;
  /** A staff member had the conversation when it came in: no agent answers it. */
  readonly isHeldBack?: boolean;
  /** Extracted text of the attachments that have any, in their order. */
  readonly attachments: readonly { readonly upload: UploadRef; readonly text: string | undefined }[];
}

/** HEARTBEAT beside what the conversation has of it already. */
export type HeartbeatNews = 'new' | 'unchanged' | 'gone';

const HEARTBEAT_LINES: Readonly<Record<HeartbeatNews, string>> = {
  // The content itself stands apart from the message, so that an older copy of it can be dropped (`sentText`).
  new: '',
  unchanged: '\nHEARTBEAT is as it was shown last.',
  gone: '\nHEARTBEAT is empty now.',
};

/** @param known what the conversation has shown of it: the content, `''` where it was empty, undefined for nothing */
export function heartbeatNews(content: string | null, known: string | undefined): HeartbeatNews | undefined {
  const now = content?.trim() ?? '';
  if (now === (known ?? '')) return now === '' ? undefined : 'unchanged';
  return now === '' ? 'gone' : 'new';
}

/** A user's message as the model is sent it. */
export function sentText({ sent, heartbeat = '' }: Pick<UserMessage, 'sent' | 'heartbeat'>): string {
  // Only the service's own text precedes the end of the context block.
  const end = heartbeat === '' ? -1 : sent.indexOf(CONTEXT_END);
  return end === -1 ? sent : `${sent.slice(0, end)}\n${heartbeatBlock(heartbeat)}${sent.slice(end)}`;
}

export function heartbeatBlock(heartbeat: string): string {
  return `<heartbeat>\n${heartbeat}\n</heartbeat>`;
}

const CONTEXT_END = '\n</context>';

/** Extracted text of all attachments of one message; more is cut, so that one message cannot fill the window. */
const ATTACHMENTS_MAX_CHARACTERS = 2 * limits.attachmentTextMaxCharacters;

const DELEGATED =
  'Another agent asks for this. It reads the last message you write and nothing else; nobody can answer questions in between.';

const IN_A_GROUP = 'This is said in a group of a chat app: others read along, and everything you answer goes to all of them.';
const HELD_BACK =
  'A person of the team had this conversation when this message came in. You were not shown it then and did not answer it; what the person answered follows, if they did.';

/**
 * The user's message as the model is sent it, but for the content of HEARTBEAT (`sentText`): the time first, then the
 * message, then the text of its attachments. It is stored as built and always sent that way; building it again later
 * would give other bytes.
 */
export function dynamicContext(turn: UserTurn): string {
  const heartbeat = turn.heartbeat === undefined ? '' : HEARTBEAT_LINES[turn.heartbeat];
  const delegated = turn.isDelegated === true ? `\n${DELEGATED}` : '';
  const heldBack = turn.isHeldBack === true ? `\n${HELD_BACK}` : '';
  const group = turn.messages.some(({ channelMessage }) => channelMessage?.isGroup === true) ? `\n${IN_A_GROUP}` : '';
  const context = `<context>\nCurrent time: ${timestamp(turn.now, turn.timezone ?? 'UTC')}${delegated}${group}${heldBack}${heartbeat}${CONTEXT_END}`;
  const said = turn.messages
    .map((message) => toMessageText(message, { amongOthers: turn.messages.length > 1 }))
    .filter((text) => text !== '');
  return [context, ...(said.length > 0 ? said : ['']), ...attachmentBlocks(turn.attachments)].join('\n\n');
}

/** As in `Friday 2026-11-20 14:05:09 GMT+01:00 (Europe/Berlin)`. */
export function timestamp(now: Date, timezone: string): string {
  const second = Math.floor(now.getTime() / 1000);
  const said = saidLast.get(timezone);
  if (said?.second === second) return said.text;
  const text = formatTimestamp(now, timezone);
  saidLast.set(timezone, { second, text });
  return text;
}

/** Many turns begin in the same second. The map has one entry per format. */
const saidLast = new Map<string, { readonly second: number; readonly text: string }>();

function formatTimestamp(now: Date, timezone: string): string {
  const parts = new Map(
    formatOf(timezone)
      .formatToParts(now)
      .map(({ type, value }) => [type, value]),
  );
  const part = (type: Intl.DateTimeFormatPartTypes): string => parts.get(type) ?? '';
  const date = `${part('weekday')} ${part('year')}-${part('month')}-${part('day')}`;
  return `${date} ${part('hour')}:${part('minute')}:${part('second')} ${part('timeZoneName')} (${timezone})`;
}

/** Making a format costs a hundred times more than using it; zones are few and validated. */
const formats = new Map<string, Intl.DateTimeFormat>();

function formatOf(timezone: string): Intl.DateTimeFormat {
  const known = formats.get(timezone);
  if (known !== undefined) return known;
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone: timezone,
    weekday: 'long',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
    timeZoneName: 'longOffset',
  });
  formats.set(timezone, format);
  return format;
}

function attachmentBlocks(attachments: UserTurn['attachments']): string[] {
  let left = ATTACHMENTS_MAX_CHARACTERS;
  return attachments.map(({ upload, text }) => {
    const open = `<attachment id="${upload.id}" name="${escapeAttribute(upload.name)}" type="${upload.type}">`;
    if (upload.type.startsWith('image/')) return `${open}shown as an image</attachment>`;
    if (text === undefined || text.trim() === '') return `${open}no text could be read from this file</attachment>`;
    const shown = truncate(text, Math.min(left, limits.attachmentTextMaxCharacters));
    left -= shown.length;
    return `${open}\n${shown}${shown.length < text.length ? '\n[cut here: the file is longer]' : ''}\n</attachment>`;
  });
}

function escapeAttribute(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');
}
