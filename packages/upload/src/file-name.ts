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
