import { readFile } from 'node:fs/promises';
import type { UploadRef } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';
import type { Handlers } from '../http/call.ts';
import type { GatewayMetrics } from '../metrics.ts';
import { safeFileName } from '../upload/file-name.ts';
import type { PdfTexts } from '../upload/pdf-text.ts';
import { receiveFiles, type ReceivedFile } from '../upload/receive-files.ts';
import { Slots } from '../upload/slots.ts';
import { sniffType } from '../upload/sniff.ts';

/** Stands where a PDF's text would, so that the agent can say what is the matter. */
const NO_TEXT = '[No text could be read from this PDF: it may be scanned, protected or damaged.]';

/** Requests whose files are in memory; the others wait with theirs on disk. */
const REQUESTS_AT_ONCE = 4;

export interface UploadOptions {
  readonly pdfTexts: PdfTexts;
  readonly metrics: GatewayMetrics;
}

interface SniffedFile extends ReceivedFile {
  readonly type: UploadRef['type'];
}

export function uploadHandlers(options: UploadOptions): Pick<Handlers, 'createUploads'> {
  const atOnce = new Slots(REQUESTS_AT_ONCE);
  return {
    createUploads: async ({ caller, request, response }) => {
      await using received = await receiveFiles(request, response);
      const stored = await atOnce.run(async () => keep(caller.scope, received.files, options));
      return { kind: 'answer', status: 201, json: stored };
    },
  };
}

/** All or none: every file is looked at before the first is kept. One at a time, so that a request holds one in memory. */
async function keep(scope: TenantScope, files: readonly ReceivedFile[], options: UploadOptions): Promise<UploadRef[]> {
  const sniffed: SniffedFile[] = [];
  for (const file of files) {
    const name = safeFileName(file.name);
    sniffed.push({ ...file, name, type: await sniffType(await readFile(file.path), name) });
  }
  const stored: UploadRef[] = [];
  for (const file of sniffed) stored.push(await store(scope, file, options));
  return stored;
}

async function store(scope: TenantScope, { path, name, type }: SniffedFile, { pdfTexts, metrics }: UploadOptions): Promise<UploadRef> {
  const bytes = await readFile(path);
  const text = await textOf(type, bytes, pdfTexts);
  const ref = await scope.uploads.save({ name, type, bytes, ...(text === undefined ? {} : { text }) });
  metrics.uploads.inc({ type });
  return ref;
}

/** What a model is given of the file; undefined for an image, which it is given as it is. */
async function textOf(type: UploadRef['type'], bytes: Buffer, pdfTexts: PdfTexts): Promise<string | undefined> {
  if (type === 'application/pdf') return (await pdfTexts.read(bytes)) || NO_TEXT;
  return type === 'text/plain' ? bytes.toString('utf8') : undefined;
}
