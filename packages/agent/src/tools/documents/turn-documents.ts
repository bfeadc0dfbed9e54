import type { SessionView, UploadRef } from '@concierge/contract';
import type { Uploads } from '@concierge/tenant';
import type { ToolAccess } from '../tool-access.ts';

export interface TurnDocuments {
  /** Attached in this conversation, in order. */
  readonly list: () => Promise<readonly UploadRef[]>;
  /** undefined for what there is not, and for what this agent may not see. */
  readonly find: (id: string) => Promise<UploadRef | undefined>;
  readonly text: ReadUpload;
  /** The turn's model is sent images; otherwise it gets a note in their place. */
  readonly showsImages: boolean;
}

/** Text that is read out of an upload, now or before; undefined when there is none, as of an image. */
export type ReadUpload = (upload: UploadRef, signal: AbortSignal) => Promise<string | undefined>;

interface DocumentsOptions {
  readonly uploads: Pick<Uploads, 'find'>;
  readonly readUpload: ReadUpload;
  readonly access: ToolAccess;
  /** This turn's own; its message is not in the session yet. */
  readonly attached: readonly UploadRef[];
  /** This conversation up to the last turn. */
  readonly history: () => Promise<SessionView | undefined>;
  readonly showsImages: boolean;
}

/**
 * Uploads as the agent of a turn may see them: cs what was attached in its own conversation, admin every upload of the
 * tenant whose id it has.
 */
export function turnDocuments({ uploads, readUpload, access, attached, history, showsImages }: DocumentsOptions): TurnDocuments {
  const list = async (): Promise<readonly UploadRef[]> => {
    const earlier = (await history())?.messages ?? [];
    const all = [...earlier.flatMap((message) => (message.role === 'user' ? (message.attachments ?? []) : [])), ...attached];
    return [...new Map(all.map((upload) => [upload.id, upload])).values()];
  };
  return {
    list,
    find: async (id) => {
      if (access === 'cs' && !(await list()).some((upload) => upload.id === id)) return undefined;
      return uploads.find(id);
    },
    text: readUpload,
    showsImages,
  };
}
