import type { UploadRef } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';
import type { GatewayMetrics } from '../metrics.ts';
import type { PdfTexts } from './pdf-text.ts';

/** Stands where a PDF's text would, so that the agent can say what is the matter. */
const NO_TEXT = '[No text could be read from this PDF: it may be scanned, protected or damaged.]';

export interface StoreOptions {
  readonly pdfTexts: PdfTexts;
  readonly metrics: Pick<GatewayMetrics, 'uploads'>;
}

/** A file whose name is safe and whose type was read from its bytes. */
export interface LookedAtFile {
  readonly name: string;
  readonly type: UploadRef['type'];
  readonly bytes: Buffer;
}

/** Keeps a file with the text that a model is given of it. */
export async function storeUpload(scope: TenantScope, file: LookedAtFile, { pdfTexts, metrics }: StoreOptions): Promise<UploadRef> {
  const text = await textOf(file, pdfTexts);
  const ref = await scope.uploads.save({ ...file, ...(text === undefined ? {} : { text }) });
  metrics.uploads.inc({ type: file.type });
  return ref;
}

/** What a model is given of the file; undefined for an image, which it is given as it is. */
async function textOf({ type, bytes }: LookedAtFile, pdfTexts: PdfTexts): Promise<string | undefined> {
  if (type === 'application/pdf') return (await pdfTexts.read(bytes)) || NO_TEXT;
  return type === 'text/plain' ? bytes.toString('utf8') : undefined;
}
