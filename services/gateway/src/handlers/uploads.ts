import { readFile } from 'node:fs/promises';
import type { UploadRef } from '@concierge/contract';
import type { TenantSlots } from '@concierge/runtime';
import type { TenantScope } from '@concierge/tenant';
import { safeFileName, sniffType } from '@concierge/upload';
import type { Handlers } from '../http/call.ts';
import { receiveFiles, type ReceivedFile } from '../upload/receive-files.ts';
import { storeCounted, type StoreOptions } from '../upload/store-counted.ts';

export interface UploadOptions extends StoreOptions {
  /** Requests whose files are in memory; further requests wait with their files on disk. */
  readonly atOnce: TenantSlots;
}

interface SniffedFile extends ReceivedFile {
  readonly type: UploadRef['type'];
}

export function uploadHandlers(options: UploadOptions): Pick<Handlers, 'createUploads'> {
  return {
    createUploads: async ({ caller, request, response }) => {
      await using received = await receiveFiles(request, response);
      const stored = await options.atOnce.run(caller.scope.tenantId, async () => keep(caller.scope, received.files, options));
      return { kind: 'answer', status: 201, json: stored };
    },
  };
}

/**
 * Stores all files or none: every file is checked before the first is kept. One at a time, so that a request holds one
 * in memory.
 */
async function keep(scope: TenantScope, files: readonly ReceivedFile[], options: StoreOptions): Promise<UploadRef[]> {
  const sniffed: SniffedFile[] = [];
  for (const file of files) {
    const name = safeFileName(file.name);
    sniffed.push({ ...file, name, type: await sniffType(await readFile(file.path), name) });
  }
  const stored: UploadRef[] = [];
  for (const { path, name, type } of sniffed) stored.push(await storeCounted(scope, { name, type, bytes: await readFile(path) }, options));
  return stored;
}
