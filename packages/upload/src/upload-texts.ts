import { AppError, type UploadRef } from '@concierge/contract';
import type { Log } from '@concierge/runtime';
import type { TenantScope } from '@concierge/tenant';
import { UnreadableError, type DocumentReader } from '@concierge/web';

/** Far more than a model is given of one attachment; what there is of it stays with the upload. */
const TEXT_MAX_CHARACTERS = 2_000_000;

/** These stand where a PDF's text would, so that the agent can explain the problem. */
const NO_TEXT = '[No text could be read from this PDF: it may be scanned, protected or damaged.]';
const NOT_READ = '[This PDF has not been read: there was no time for it. view_attachment reads it.]';

export interface UploadTextsOptions {
  readonly documents: Pick<DocumentReader, 'read'>;
  readonly log: Log;
}

/**
 * What a model is given of uploads. A PDF is read when its text is first asked for, not when it comes in: an upload
 * waits for no document. What was found, also that there is nothing, is kept with the upload.
 */
export class UploadTexts {
  readonly #options: UploadTextsOptions;

  constructor(options: UploadTextsOptions) {
    this.#options = options;
  }

  /**
   * undefined for an image, which a model is given as it is. Once the signal aborts, a PDF that is not read yet is
   * answered with a note.
   */
  async read(scope: Pick<TenantScope, 'tenantId' | 'uploads'>, upload: UploadRef, signal: AbortSignal): Promise<string | undefined> {
    const kept = await scope.uploads.text(upload.id);
    if (kept !== undefined || upload.type !== 'application/pdf') return kept;
    try {
      const text = await this.#textIn(await scope.uploads.bytes(upload.id), { tenantId: scope.tenantId, signal });
      await scope.uploads.saveText(upload.id, text);
      return text;
    } catch (error) {
      if (error instanceof AppError && error.code === 'not_found') return undefined;
      if (!signal.aborted) this.#options.log.error({ err: error, upload: upload.id }, 'the text of a PDF could not be had');
      return NOT_READ;
    }
  }

  async #textIn(bytes: Uint8Array, terms: Parameters<DocumentReader['read']>[1]): Promise<string> {
    const task = { bytes, contentType: 'application/pdf', url: 'about:blank', maxCharacters: TEXT_MAX_CHARACTERS };
    try {
      return (await this.#options.documents.read(task, terms)).text;
    } catch (error) {
      if (!(error instanceof UnreadableError)) throw error;
      this.#options.log.info({ err: error, bytes: bytes.length }, 'the text of a PDF could not be read');
      return NO_TEXT;
    }
  }
}
