import type { ShownImages } from '@concierge/agent';
import type { SessionMessage, UploadRef } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';

/**
 * Newest images of a session that are sent again with each call, and their bytes together; providers refuse more or
 * charge for it.
 */
const IMAGES_MAX = 10;
const IMAGE_BYTES_MAX = 20 * 1024 * 1024;

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
