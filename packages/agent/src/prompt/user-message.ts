import {
  limits,
  truncate,
  type AcceptedTurn,
  type ChannelMedia,
  type ChannelMessage,
  type UploadRef,
  type UserMessage,
} from '@concierge/contract';

/**
 * What became of a file that came with a message: kept as an upload, or why it cannot be used, as in `it is too large`.
 */
export type MediaFile = { readonly upload: UploadRef } | { readonly problem: string };

/** One message of a contact or user, as its channel accepted it. */
export interface UserMessageInput {
  readonly text: string;
  readonly channelMessage?: ChannelMessage | undefined;
  /** What became of the media of `channelMessage`, in their order; without it nothing was fetched. */
  readonly files?: readonly MediaFile[] | undefined;
}

export interface PromptFacts {
  /** HEARTBEAT as it is now and as the conversation has it; undefined where the message does not mention it. */
  readonly heartbeat?: { readonly now: string | null; readonly known: string | undefined };
  readonly timezone: string | undefined;
  readonly isHeldBack?: boolean;
}

/** A turn whose words are part of the message, and what became of the files that came with them. */
export interface PromptTurn {
  readonly turn: AcceptedTurn;
  readonly files?: readonly MediaFile[] | undefined;
}

/** The turn that runs, and those that it answers. */
export type PromptTurns = readonly [PromptTurn, ...PromptTurn[]];

/** What a model is given of an attachment; undefined for an image. */
export type ReadText = (upload: UploadRef) => Promise<string | undefined>;

/**
 * The user's message as it is stored, with what the model is sent built into it once and for all: the words of the turn
 * that runs, the first of `turns`, and of those that it answers with its own.
 */
export async function buildUserMessage(turns: PromptTurns, { heartbeat, ...facts }: PromptFacts, readText: ReadText): Promise<UserMessage> {
  const now = new Date();
  const [{ turn: head }] = turns;
  const refs = turns.flatMap(({ turn, files = [] }) => [
    ...turn.attachments,
    ...files.flatMap((file) => ('upload' in file ? [file.upload] : [])),
  ]);
  const attachments = await Promise.all(refs.map(async (upload) => ({ upload, text: await readText(upload) })));
  const messages = turns.map(({ turn, files }) => ({ text: textWithPreface(turn), channelMessage: turn.channelMessage, files }));
  const news = heartbeat === undefined ? undefined : heartbeatNews(heartbeat.now, heartbeat.known);
  return {
    id: `${head.turnId}.0`,
    turnId: head.turnId,
    at: now.toISOString(),
    role: 'user',
    text: turns
      .map(({ turn }) => turn.text)
      .filter((text) => text !== '')
      .join('\n\n'),
    sent: dynamicContext({
      messages: turns.length > 1 ? joinAlbums(messages) : messages,
      now,
      attachments,
      isDelegated: head.grant !== undefined,
      ...facts,
      ...(news && { heartbeat: news }),
    }),
    ...((news === 'new' || news === 'gone') && { heartbeat: heartbeat?.now?.trim() ?? '' }),
    ...(refs.length > 0 && { attachments: refs }),
    ...(turns.length > 1 && { said: turns.map(toSaid) }),
  };
}

function textWithPreface({ preface, text }: AcceptedTurn): string {
  return preface === undefined ? text : `${preface}\n\n[New message]\n${text}`;
}

function toSaid({ turn: { turnId, text, attachments }, files = [] }: PromptTurn): NonNullable<UserMessage['said']>[number] {
  const kept = [...attachments, ...files.flatMap((file) => ('upload' in file ? [file.upload] : []))];
  return { turnId, text, uploads: kept.map(({ id }) => id) };
}

/** Restores the messages as they were sent: the channel has made several of an album, which was one. */
function joinAlbums(messages: readonly UserMessageInput[]): UserMessageInput[] {
  const joined: UserMessageInput[] = [];
  for (const message of messages) {
    const before = joined.at(-1);
    const albumId = message.channelMessage?.albumId;
    if (before !== undefined && albumId !== undefined && before.channelMessage?.albumId === albumId)
      joined.splice(-1, 1, withPicture(before, message));
    else joined.push(message);
  }
  return joined;
}

function withPicture(album: UserMessageInput, picture: UserMessageInput): UserMessageInput {
  const text = [album.text, picture.text].filter((caption) => caption !== '').join('\n');
  const media = [...(album.channelMessage?.media ?? []), ...(picture.channelMessage?.media ?? [])];
  const files = album.files && picture.files && [...album.files, ...picture.files];
  return { text, channelMessage: album.channelMessage && { ...album.channelMessage, media }, files };
}

/** How many files, cards and lines of an order are named; the others are counted. */
const NAMED_MAX = 20;
const QUOTED_MAX_CHARACTERS = 120;

const kindNames: Readonly<Record<ChannelMedia['kind'], string>> = {
  image: 'Picture',
  video: 'Video',
  audio: 'Audio file',
  voice: 'Voice message',
  document: 'Document',
  sticker: 'Sticker',
  animation: 'Animation',
  share: 'Shared post',
  unknown: 'File',
};

/**
 * The message as a model reads it: its text, and in brackets what came with it and is no text. Files that can be used
 * are attachments, and only named here among several messages, so that it can be seen with which of them they came.
 */
export function toMessageText(
  { text, channelMessage, files }: UserMessageInput,
  { amongOthers }: { readonly amongOthers: boolean },
): string {
  if (channelMessage === undefined) return text.trim() === '' ? '' : text;
  const notes = [...mediaNotes(channelMessage.media, files, amongOthers), ...otherNotes(channelMessage)];
  const said = [text, ...notes].filter((part) => part.trim() !== '').join('\n');
  const hasAttachment = files?.some((file) => 'upload' in file) === true;
  return said === '' && !hasAttachment ? '[An empty message.]' : said;
}

function mediaNotes(media: readonly ChannelMedia[], files: readonly MediaFile[] | undefined, amongOthers: boolean): string[] {
  const notes = media.flatMap(({ kind, fileName }, index) => {
    const name = `${kindNames[kind]}${fileName === null ? '' : ` ${quoted(fileName)}`}`;
    const file = files?.[index] ?? { problem: 'it was not fetched' };
    if ('problem' in file) return [`[${name}: ${file.problem}.]`];
    return amongOthers ? [`[${name}: attached as ${file.upload.id}.]`] : [];
  });
  return named(notes, (more) => `[${String(more)} more files.]`);
}

function otherNotes({ location, cards, choice, order }: ChannelMessage): string[] {
  const notes: string[] = [];
  if (location !== undefined) {
    const { latitude, longitude, name, address } = location;
    const place = [name, address].filter((part) => part !== null).map((part) => quoted(part));
    notes.push(`[Location: ${[...place, `latitude ${String(latitude)}`, `longitude ${String(longitude)}`].join(', ')}.]`);
  }
  if (cards !== undefined && cards.length > 0) {
    const names = named(
      cards.map((name) => quoted(name)),
      (more) => `${String(more)} more`,
    );
    notes.push(`[Contact cards: ${names.join(', ')}. Only the names are known here.]`);
  }
  if (choice !== undefined) {
    const title = choice.title === null ? '' : `${quoted(choice.title)}, `;
    notes.push(`[Chosen from the buttons or the menu: ${title}id ${quoted(choice.id)}.]`);
  }
  if (order !== undefined) {
    const lines = order.items.map(({ productId, quantity }) => `${String(quantity ?? 'some')} of product ${quoted(productId)}`);
    const catalog = order.catalogId === null ? '' : ` from catalog ${quoted(order.catalogId)}`;
    notes.push(`[Order${catalog}: ${named(lines, (more) => `${String(more)} more products`).join(', ')}.]`);
  }
  return notes;
}

function named(all: readonly string[], rest: (more: number) => string): string[] {
  return all.length <= NAMED_MAX ? [...all] : [...all.slice(0, NAMED_MAX), rest(all.length - NAMED_MAX)];
}

/** Quotes a name that others chose on one line: it cannot pass for a note of ours. */
function quoted(text: string): string {
  const line = text
    .toWellFormed()
    .replaceAll(/[\p{Cc}\p{Z}]+/gu, ' ')
    .replaceAll('"', '’')
    .trim();
  const characters = Array.from(line);
  return `"${characters.length > QUOTED_MAX_CHARACTERS ? `${characters.slice(0, QUOTED_MAX_CHARACTERS).join('')}…` : line}"`;
}

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
  const parts = findFormat(timezone).formatToParts(now);
  const part = (type: Intl.DateTimeFormatPartTypes): string => parts.find((one) => one.type === type)?.value ?? '';
  const date = `${part('weekday')} ${part('year')}-${part('month')}-${part('day')}`;
  return `${date} ${part('hour')}:${part('minute')}:${part('second')} ${part('timeZoneName')} (${timezone})`;
}

/** Making a format costs a hundred times more than using it; zones are few and validated. */
const formats = new Map<string, Intl.DateTimeFormat>();

function findFormat(timezone: string): Intl.DateTimeFormat {
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
