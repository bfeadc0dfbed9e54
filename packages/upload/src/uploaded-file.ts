import { isUtf8 } from 'node:buffer';
import { AppError, limits, type UploadRef } from '@concierge/contract';
import { fileTypeFromBuffer } from 'file-type';
import { imageSize } from 'image-size';
import type { TenantScope } from '@concierge/tenant';

/** Bytes of a stored name; limits of file systems and of `UploadRef` are both 255. */
const NAME_MAX_BYTES = 255;
/**
 * The limit of what is normalized: normalizing takes time in the square of the length where marks follow one another.
 */
const HEAD_MAX_CHARACTERS = 1000;
/** An extension and what it needs around it. */
const TAIL_MAX_CHARACTERS = 24;

// Control characters, and the marks that turn text round: `exe.fdp` must not read as something else.
// eslint-disable-next-line no-control-regex -- control characters are what is removed
const unwanted = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/** The last part of whatever path a client sent, as something that can be shown anywhere. Never used as a path. */
export function safeFileName(given: string): string {
  const last = shorten(given.slice(Math.max(given.lastIndexOf('/'), given.lastIndexOf('\\')) + 1))
    .normalize('NFC')
    .toWellFormed();
  const clean = last.replaceAll(unwanted, '').trim();
  return clean === '' || clean === '.' || clean === '..' ? 'file' : cut(clean);
}

/** Far more than is kept, with both ends. */
function shorten(name: string): string {
  if (name.length <= HEAD_MAX_CHARACTERS + TAIL_MAX_CHARACTERS) return name;
  return name.slice(0, HEAD_MAX_CHARACTERS) + name.slice(-TAIL_MAX_CHARACTERS);
}

/** Shortens the stem and keeps a short extension. */
function cut(name: string): string {
  if (Buffer.byteLength(name) <= NAME_MAX_BYTES) return name;
  const extension = /\.[A-Za-z0-9]{1,10}$/u.exec(name)?.[0] ?? '';
  let stem = '';
  let bytes = Buffer.byteLength(extension);
  for (const character of name.slice(0, name.length - extension.length)) {
    bytes += Buffer.byteLength(character);
    if (bytes > NAME_MAX_BYTES) break;
    stem += character;
  }
  return stem + extension;
}

type UploadType = UploadRef['type'];
type ImageType = Extract<UploadType, `image/${string}`>;

/** The result of file-type, as the types this service keeps. An animated PNG is a PNG. */
const sniffed: Readonly<Record<string, UploadType>> = {
  'image/png': 'image/png',
  'image/apng': 'image/png',
  'image/jpeg': 'image/jpeg',
  'image/gif': 'image/gif',
  'image/webp': 'image/webp',
  'application/pdf': 'application/pdf',
};

const imageSizeNames: Readonly<Record<ImageType, string>> = {
  'image/png': 'png',
  'image/jpeg': 'jpg',
  'image/gif': 'gif',
  'image/webp': 'webp',
};

// eslint-disable-next-line no-control-regex -- control characters are what is looked for
const controls = /[\u0000-\u0008\u000e-\u001f\u007f]/u;

/**
 * The type of a file by its bytes; what a client declares counts for nothing. Text is what is UTF-8 without control
 * characters, whatever else it may be.
 * @throws AppError `unsupported_media_type`; `too_large` for an image of more than limits.imageMaxPixels
 */
export async function sniffType(bytes: Buffer, name: string): Promise<UploadType> {
  const found = await fileTypeFromBuffer(bytes).catch(() => undefined);
  const type = found === undefined ? undefined : sniffed[found.mime];
  if (type !== undefined) {
    if (isImage(type)) checkImage(bytes, type, name);
    return type;
  }
  if (isUtf8(bytes) && !controls.test(bytes.toString('utf8'))) return 'text/plain';
  throw new AppError('unsupported_media_type', `${name} is none of png, jpeg, gif, webp, PDF and UTF-8 text.`);
}

function isImage(type: UploadType): type is ImageType {
  return type.startsWith('image/');
}

/**
 * Reads the header only: a small file may claim to be an enormous picture, and nothing must decode it before this is
 * known.
 */
function checkImage(bytes: Buffer, type: ImageType, name: string): void {
  const { width, height, type: format } = measure(bytes, name);
  if (format !== imageSizeNames[type] || width < 1 || height < 1) throw unreadable(name);
  if (width * height > limits.imageMaxPixels)
    throw new AppError('too_large', `${name} has more than ${String(limits.imageMaxPixels)} pixels.`);
}

function measure(bytes: Buffer, name: string): ReturnType<typeof imageSize> {
  try {
    return imageSize(bytes);
  } catch (error) {
    throw unreadable(name, error);
  }
}

function unreadable(name: string, cause?: unknown): AppError {
  return new AppError('unsupported_media_type', `${name} is not a readable image.`, { cause });
}

/** A file whose name is safe and whose type was read from its bytes. */
export interface LookedAtFile {
  readonly name: string;
  readonly type: UploadRef['type'];
  readonly bytes: Buffer;
  /** A visitor of the web widget. */
  readonly sender?: string | undefined;
}

/** Keeps a file. What is text is kept as such at once; a PDF is read when it is requested (`UploadTexts`). */
export async function storeUpload(scope: TenantScope, file: LookedAtFile): Promise<UploadRef> {
  return await scope.uploads.save(file.type === 'text/plain' ? { ...file, text: file.bytes.toString('utf8') } : file);
}
