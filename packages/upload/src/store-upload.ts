import type { UploadRef } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';

/** A file whose name is safe and whose type was read from its bytes. */
export interface LookedAtFile {
  readonly name: string;
  readonly type: UploadRef['type'];
  readonly bytes: Buffer;
}

/** Keeps a file. What is text is kept as such at once; a PDF is read when it is requested (`UploadTexts`). */
export async function storeUpload(scope: TenantScope, file: LookedAtFile): Promise<UploadRef> {
  return await scope.uploads.save(file.type === 'text/plain' ? { ...file, text: file.bytes.toString('utf8') } : file);
}
