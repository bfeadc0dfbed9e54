import { createHash } from 'node:crypto';
import { AppError, limits, type UploadRef } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';
import { safeFileName } from '../upload/file-name.ts';
import type { Slots } from '../upload/slots.ts';
import { sniffType } from '../upload/sniff.ts';
import { storeUpload, type LookedAtFile, type StoreOptions } from '../upload/store-upload.ts';
import type { NamedFile } from './compose-message.ts';

export interface GivenFilesOptions extends StoreOptions {
  /** Room for so many requests with their files in memory, shared with other uploads. */
  readonly atOnce: Slots;
}

export interface KeptFiles {
  readonly refs: readonly UploadRef[];
  /** What makes two requests with these files the same one: the bytes, not the ids, which are new each time. */
  readonly keys: readonly string[];
}

type Found = { readonly ref: UploadRef } | { readonly fresh: LookedAtFile };

/** Files that come inside of a request, kept as uploads are: the same types, limits and checks. */
export class GivenFiles {
  readonly #options: GivenFilesOptions;

  constructor(options: GivenFilesOptions) {
    this.#options = options;
  }

  /** All or none: every file is looked at before the first is kept. @throws AppError `invalid_request`, `unsupported_media_type`, `too_large` */
  async keep(scope: TenantScope, files: readonly NamedFile[]): Promise<KeptFiles> {
    if (files.length === 0) return { refs: [], keys: [] };
    return this.#options.atOnce.run(async () => {
      const found: Found[] = [];
      for (const file of files) found.push(await look(scope, file));
      const refs: UploadRef[] = [];
      for (const file of found) refs.push('ref' in file ? file.ref : await storeUpload(scope, file.fresh, this.#options));
      return { refs, keys: found.map((file) => ('ref' in file ? file.ref.id : digestOf(file.fresh))) };
    });
  }
}

async function look(scope: TenantScope, { file, name }: NamedFile): Promise<Found> {
  if ('id' in file) {
    const ref = await scope.uploads.find(file.id);
    if (ref === undefined) throw refused(file.at, 'is not an upload of this tenant');
    return { ref };
  }
  const bytes = bytesOf(file);
  const safeName = safeFileName(name);
  return { fresh: { name: safeName, type: await sniffType(bytes, safeName), bytes } };
}

/** Base64, or a data URL of it. What type it claims counts for nothing. */
function bytesOf({ data, at }: { readonly data: string; readonly at: string }): Buffer {
  const comma = data.slice(0, 5).toLowerCase() === 'data:' ? data.indexOf(',') : -1;
  if (comma >= 0 && !data.slice(0, comma).toLowerCase().endsWith(';base64')) throw refused(at, 'must be in base64');
  const bytes = Buffer.from(data.slice(comma + 1), 'base64');
  if (bytes.length === 0) throw refused(at, 'is empty, or not in base64');
  if (bytes.length > limits.uploadMaxBytes)
    throw new AppError('too_large', `A file may have at most ${String(limits.uploadMaxBytes)} bytes.`);
  return bytes;
}

function digestOf({ name, bytes }: LookedAtFile): string {
  return createHash('sha256').update(bytes).update(name).digest('hex');
}

function refused(path: string, message: string): AppError {
  return new AppError('invalid_request', undefined, { errors: [{ path, message }] });
}
