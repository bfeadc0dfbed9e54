import { dynamicContext, heartbeatNews, type MediaFile, type UserMessageInput, type ShownImages } from '@concierge/agent';
import type { AcceptedTurn, SessionMessage, UploadRef, UserMessage } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';

/**
 * Newest images of a session that are sent again with each call, and their bytes together; providers refuse more or
 * charge for it.
 */
const IMAGES_MAX = 10;
const IMAGE_BYTES_MAX = 20 * 1024 * 1024;

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

/** What a model is given of an attachment; undefined for an image. */
export type ReadText = (upload: UploadRef) => Promise<string | undefined>;

/**
 * The user's message as it is stored, with what the model is sent built into it once and for all: the words of the turn
 * that runs, the first of `turns`, and of those that it answers with its own.
 */
export async function buildUserMessage(
  turns: readonly [PromptTurn, ...PromptTurn[]],
  { heartbeat, ...facts }: PromptFacts,
  readText: ReadText,
): Promise<UserMessage> {
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

/**
 * Bytes of the newest images in a session, those that tools have shown included. One that cannot be read any more is
 * not shown; the message states that. Held for the turn, since every call of the model is sent them again.
 */
export class SessionImages {
  readonly #uploads: Pick<TenantScope['uploads'], 'bytes'>;
  #held: ShownImages = new Map();

  constructor(uploads: Pick<TenantScope['uploads'], 'bytes'>) {
    this.#uploads = uploads;
  }

  async loadImages(messages: readonly SessionMessage[]): Promise<ShownImages> {
    const images = new Map<string, { readonly mediaType: string; readonly base64: string }>();
    for (const upload of newestImages(messages)) {
      const image = this.#held.get(upload.id) ?? (await this.#load(upload));
      if (image !== undefined) images.set(upload.id, image);
    }
    this.#held = images;
    return images;
  }

  async #load({ id, type }: UploadRef): Promise<{ mediaType: string; base64: string } | undefined> {
    const bytes = await this.#uploads.bytes(id).catch(() => undefined);
    return bytes && { mediaType: type, base64: bytes.toString('base64') };
  }
}

/** Newest first. One that is in several messages counts once. */
function newestImages(messages: readonly SessionMessage[]): Iterable<UploadRef> {
  const chosen = new Map<string, UploadRef>();
  let bytes = 0;
  for (const message of messages.toReversed()) {
    for (const upload of imagesIn(message)) {
      if (chosen.has(upload.id)) continue;
      bytes += upload.size;
      if (chosen.size === IMAGES_MAX || bytes > IMAGE_BYTES_MAX) return chosen.values();
      chosen.set(upload.id, upload);
    }
  }
  return chosen.values();
}

function imagesIn(message: SessionMessage): readonly UploadRef[] {
  if (message.role === 'assistant' || (message.role === 'tool' && message.pruned === true)) return [];
  return message.attachments?.filter((upload) => upload.type.startsWith('image/')) ?? [];
}
