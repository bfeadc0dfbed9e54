import { isUtf8 } from 'node:buffer';
import { AppError, limits, type UploadRef } from '@concierge/contract';
import { fileTypeFromBuffer } from 'file-type';
import { imageSize } from 'image-size';

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
