import type { UploadRef } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';
import type { PdfTexts } from './pdf-texts.ts';

/** Stands where a PDF's text would, so that the agent can say what is the matter. */
const NO_TEXT = '[No text could be read from this PDF: it may be scanned, protected or damaged.]';

/** A file whose name is safe and whose type was read from its bytes. */
export interface LookedAtFile {
  readonly name: string;
  readonly type: UploadRef['type'];
  readonly bytes: Buffer;
}

export interface StoreOptions {
  readonly pdfTexts: PdfTexts;
  /** Ends the reading of its text, without which it is kept then. */
  readonly signal?: AbortSignal | undefined;
}

/** Keeps a file with the text that a model is given of it. */
export async function storeUpload(scope: TenantScope, file: LookedAtFile, options: StoreOptions): Promise<UploadRef> {
  const text = await textOf(file, options);
  return await scope.uploads.save({ ...file, ...(text === undefined ? {} : { text }) });
}

/** What a model is given of the file; undefined for an image, which it is given as it is. */
async function textOf({ type, bytes }: LookedAtFile, { pdfTexts, signal }: StoreOptions): Promise<string | undefined> {
  if (type === 'application/pdf') return (await pdfTexts.read(bytes, signal)) || NO_TEXT;
  return type === 'text/plain' ? bytes.toString('utf8') : undefined;
}
