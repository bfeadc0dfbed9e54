import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Request, Response } from 'express';
import { AppError, limits } from '@concierge/contract';
import multer, { MulterError } from 'multer';

/** One file of the request, on disk until the request ends. */
export interface ReceivedFile {
  readonly path: string;
  /** As the client sent it. */
  readonly name: string;
  readonly size: number;
}

/** The files of a multipart request in a folder of their own, which goes when this is disposed. */
export interface ReceivedFiles extends AsyncDisposable {
  readonly files: readonly ReceivedFile[];
}

/** Parts that are no file are refused; busboy needs a number. */
const OTHER_FIELDS = 0;

/**
 * Streams the field `file` to disk and stops at the first limit that is passed, so that a request never costs more memory than a
 * chunk nor more disk than it may store.
 * @throws AppError `unsupported_media_type`, `invalid_request`, `too_large`
 */
export async function receiveFiles(request: Request, response: Response): Promise<ReceivedFiles> {
  if (!/^multipart\/form-data\s*;/iu.test(request.headers['content-type'] ?? '')) {
    throw new AppError('unsupported_media_type', 'The Content-Type must be multipart/form-data.');
  }
  const folder = await mkdtemp(join(tmpdir(), 'concierge-upload-'));
  const dispose = async (): Promise<void> => {
    await rm(folder, { recursive: true, force: true });
  };
  try {
    await runMulter(folder, request, response);
    return { files: filesOf(request), [Symbol.asyncDispose]: dispose };
  } catch (error) {
    await dispose();
    throw toUploadError(error);
  }
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

function filesOf(request: Request): ReceivedFile[] {
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
