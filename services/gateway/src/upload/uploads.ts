import { readFile, lstat, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { finished } from 'node:stream';
import { AppError, limits, type UploadRef } from '@concierge/contract';
import type { TenantSlots } from '@concierge/runtime';
import type { TenantScope } from '@concierge/tenant';
import { safeFileName, sniffType, storeUpload, type LookedAtFile } from '@concierge/upload';
import type { Request, Response } from 'express';
import multer, { MulterError } from 'multer';
import type { Handlers } from '../http/call.ts';
import type { GatewayMetrics } from '../metrics.ts';

export interface UploadOptions extends StoreOptions {
  /** Requests whose files are in memory; further requests wait with their files on disk. */
  readonly atOnce: TenantSlots;
}

interface SniffedFile extends ReceivedFile {
  readonly type: UploadRef['type'];
}

export function uploadHandlers(options: UploadOptions): Pick<Handlers, 'createUploads' | 'getUpload'> {
  return {
    createUploads: async ({ caller, request, response }) => {
      await using received = await receiveFiles(request, response);
      const stored = await options.atOnce.run(caller.scope.tenantId, async () => keep(caller.scope, received.files, options));
      return { kind: 'answer', status: 201, json: stored };
    },
    getUpload: async ({ caller: { scope }, params }) => {
      const upload = await scope.uploads.find(params.id);
      if (upload === undefined) throw new AppError('not_found', 'There is no such upload.');
      const bytes = await scope.uploads.bytes(upload.id);
      const headers = {
        'Content-Type': upload.type === 'text/plain' ? 'text/plain; charset=utf-8' : upload.type,
        'Content-Length': String(bytes.length),
        'Content-Disposition': contentDisposition(upload.name),
        'Cache-Control': 'private, no-store',
      };
      return { kind: 'answer', status: 200, text: bytes, headers };
    },
  };
}

export interface OneUpload {
  readonly scope: TenantScope;
  readonly sender: string;
  readonly storing: UploadOptions;
  /** Called before it is kept; what it throws refuses the file. */
  readonly admit: (bytes: number) => Promise<void>;
}

/**
 * Stores the one file of a request.
 * @throws AppError as `receiveFiles`, and what `admit` throws
 */
export async function storeOne(request: Request, response: Response, { scope, sender, storing, admit }: OneUpload): Promise<UploadRef> {
  await using received = await receiveFiles(request, response);
  if (received.files.length > 1) throw missing('one file a request');
  const [stored] = await storing.atOnce.run(scope.tenantId, async () => keep(scope, received.files, { ...storing, sender, admit }));
  if (stored === undefined) throw missing('at least one file is needed');
  return stored;
}

/** To be saved, under its name (RFC 6266); the name for old clients has nothing that would need an escape. */
function contentDisposition(name: string): string {
  const plain = name.replaceAll(/[^\w.-]/gu, '_');
  const encoded = encodeURIComponent(name.toWellFormed()).replaceAll(/['()*]/gu, (mark) => `%${mark.charCodeAt(0).toString(16)}`);
  return `attachment; filename="${plain}"; filename*=UTF-8''${encoded}`;
}

/**
 * Stores all files or none: every file is checked before the first is kept. One at a time, so that a request holds one
 * in memory.
 */
async function keep(
  scope: TenantScope,
  files: readonly ReceivedFile[],
  { sender, admit, ...options }: StoreOptions & Pick<LookedAtFile, 'sender'> & Partial<Pick<OneUpload, 'admit'>>,
): Promise<UploadRef[]> {
  const sniffed: SniffedFile[] = [];
  for (const file of files) {
    const name = safeFileName(file.name);
    sniffed.push({ ...file, name, type: await sniffType(await readFile(file.path), name) });
  }
  await admit?.(sniffed.reduce((sum, { size }) => sum + size, 0));
  const stored: UploadRef[] = [];
  for (const { path, name, type } of sniffed) {
    stored.push(await storeCounted(scope, { name, type, bytes: await readFile(path), sender }, options));
  }
  return stored;
}

export interface StoreOptions {
  readonly metrics: Pick<GatewayMetrics, 'uploads'>;
}

/** Keeps a file that came over HTTP, and counts it. */
export async function storeCounted(scope: TenantScope, file: LookedAtFile, { metrics }: StoreOptions): Promise<UploadRef> {
  const ref = await storeUpload(scope, file);
  metrics.uploads.inc({ type: file.type });
  return ref;
}

/** One file of the request, on disk until the request ends. */
interface ReceivedFile {
  readonly path: string;
  /** As the client sent it. */
  readonly name: string;
  readonly size: number;
}

/** The files of a multipart request in a separate folder, which is deleted when this is disposed. */
interface ReceivedFiles extends AsyncDisposable {
  readonly files: readonly ReceivedFile[];
}

/** Parts that are no file are refused; busboy needs a number. */
const OTHER_FIELDS = 0;
const folderPrefix = 'concierge-upload-';
/** No request lasts this long: the gateway of an older folder was killed. */
const FOLDER_MAX_AGE_MS = 3600_000;

/**
 * Streams the field `file` to disk and stops at the first limit that is passed, so that a request never costs more
 * memory than a chunk nor more disk than it may store.
 * @throws AppError `unsupported_media_type`, `invalid_request` (also when the client has gone), `too_large`
 */
export async function receiveFiles(request: Request, response: Response, parent = tmpdir()): Promise<ReceivedFiles> {
  if (!/^multipart\/form-data\s*;/iu.test(request.headers['content-type'] ?? '')) {
    throw new AppError('unsupported_media_type', 'The Content-Type must be multipart/form-data.');
  }
  const folder = await mkdtemp(join(parent, folderPrefix));
  const dispose = async (): Promise<void> => {
    // multer may still open a file while its folder is deleted; the next attempt removes it.
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  };
  try {
    await Promise.race([runMulter(folder, request, response), cutOff(request)]);
    return { files: readFiles(request), [Symbol.asyncDispose]: dispose };
  } catch (error) {
    await dispose();
    throw toUploadError(error);
  }
}

/** Removes the folders of gateways that were killed while they received files. */
export async function sweepReceivedFiles(parent = tmpdir(), olderThanMs = FOLDER_MAX_AGE_MS): Promise<void> {
  for (const name of await readdir(parent)) {
    if (!name.startsWith(folderPrefix)) continue;
    const folder = join(parent, name);
    const stats = await lstat(folder).catch(() => undefined);
    // Other users of the machine may make folders with such names.
    if (stats?.isDirectory() !== true || stats.uid !== process.getuid?.()) continue;
    if (stats.mtimeMs < Date.now() - olderThanMs) await rm(folder, { recursive: true, force: true });
  }
}

/**
 * Rejects when the client goes before its request has ended. multer does not notice one that is gone before it begins
 * to read.
 */
async function cutOff(request: Request): Promise<never> {
  return new Promise<never>((_resolve, reject) => {
    finished(request, { writable: false }, (error) => {
      if (error !== undefined && error !== null) reject(error);
    });
  });
}

async function runMulter(folder: string, request: Request, response: Response): Promise<void> {
  const receive = multer({
    dest: folder,
    defParamCharset: 'utf8',
    limits: { fileSize: limits.uploadMaxBytes, files: limits.uploadFilesMax, fields: OTHER_FIELDS, fieldNameSize: 100, headerPairs: 20 },
  }).array('file');
  await new Promise<void>((resolve, reject) => {
    receive(request, response, (error: unknown) => {
      if (error === undefined || error === null) resolve();
      else reject(error instanceof Error ? error : new Error('multipart failed', { cause: error }));
    });
  });
}

function readFiles(request: Request): ReceivedFile[] {
  const files = Array.isArray(request.files) ? request.files : [];
  if (files.length === 0) throw missing('at least one file is needed');
  return files.map((file, index) => {
    if (file.size === 0)
      throw new AppError('invalid_request', undefined, { errors: [{ path: `file.${String(index)}`, message: 'is empty' }] });
    return { path: file.path, name: file.originalname, size: file.size };
  });
}

function missing(message: string): AppError {
  return new AppError('invalid_request', undefined, { errors: [{ path: 'file', message }] });
}

function toUploadError(error: unknown): unknown {
  if (error instanceof AppError) return error;
  if (!(error instanceof MulterError)) return new AppError('invalid_request', 'The multipart body is malformed.', { cause: error });
  if (error.code === 'LIMIT_FILE_SIZE') return new AppError('too_large', `A file may have at most ${String(limits.uploadMaxBytes)} bytes.`);
  // multer names the field, whether it is one too many of `file` or one that is not read.
  if (error.code === 'LIMIT_FILE_COUNT' || error.field === 'file') return missing(`at most ${String(limits.uploadFilesMax)} files`);
  return missing('only files in the field `file` are read');
}
