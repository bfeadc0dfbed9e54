import { dynamicContext, type ShownImages } from '@concierge/agent';
import type { AcceptedTurn, SessionMessage, UploadRef, UserMessage } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';

/** Newest images of a session that are sent again with each call, and their bytes together; providers refuse more or charge for it. */
const IMAGES_MAX = 10;
const IMAGE_BYTES_MAX = 20 * 1024 * 1024;

export interface PromptFacts {
  readonly heartbeat: string | null;
  readonly timezone: string | undefined;
}

/** The user's message as it is stored, with what the model is sent built into it once and for all. */
export async function userMessageOf(
  uploads: Pick<TenantScope['uploads'], 'text'>,
  turn: AcceptedTurn,
  facts: PromptFacts,
): Promise<UserMessage> {
  const now = new Date();
  const attachments = await Promise.all(turn.attachments.map(async (upload) => ({ upload, text: await uploads.text(upload.id) })));
  return {
    id: `${turn.turnId}.0`,
    turnId: turn.turnId,
    at: now.toISOString(),
    role: 'user',
    text: turn.text,
    sent: dynamicContext({ text: turn.text, now, attachments, isDelegated: turn.grant !== undefined, ...facts }),
    ...(turn.attachments.length > 0 && { attachments: turn.attachments }),
  };
}

/** Bytes of the newest images in the session. One that cannot be read any more is not shown; the message says so. */
export async function loadImages(
  uploads: Pick<TenantScope['uploads'], 'bytes'>,
  messages: readonly SessionMessage[],
): Promise<ShownImages> {
  const images = new Map<string, { mediaType: string; base64: string }>();
  for (const upload of newestImages(messages)) {
    const bytes = await uploads.bytes(upload.id).catch(() => undefined);
    if (bytes !== undefined) images.set(upload.id, { mediaType: upload.type, base64: bytes.toString('base64') });
  }
  return images;
}

function newestImages(messages: readonly SessionMessage[]): UploadRef[] {
  const chosen: UploadRef[] = [];
  let bytes = 0;
  for (const message of messages.toReversed()) {
    if (message.role !== 'user' || message.attachments === undefined) continue;
    for (const upload of message.attachments) {
      if (!upload.type.startsWith('image/')) continue;
      bytes += upload.size;
      if (chosen.length === IMAGES_MAX || bytes > IMAGE_BYTES_MAX) return chosen;
      chosen.push(upload);
    }
  }
  return chosen;
}
