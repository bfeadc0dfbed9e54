import type { ChannelMedia, ChannelMessage, UploadRef } from '@concierge/contract';

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
  const notes =
    channelMessage === undefined ? [] : [...mediaNotes(channelMessage.media, files, amongOthers), ...otherNotes(channelMessage)];
  const hasAttachment = files?.some((file) => 'upload' in file) === true;
  const said = [text, ...notes].filter((part) => part.trim() !== '').join('\n');
  return said === '' && channelMessage !== undefined && !hasAttachment ? '[An empty message.]' : said;
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
