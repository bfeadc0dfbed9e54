export type DocumentKind = 'html' | 'pdf' | 'text' | 'binary';

const META_BYTES = 1024;
const metaElement = /<meta\s([^<>]*)>/giu;
const charsetName = /charset\s*=\s*(?:["']\s*)?([\w:.-]+)/iu;
const textTypes = /^(?:text\/|application\/(?:[\w.+-]*\+)?(?:json|xml|yaml|x-yaml|javascript|ld\+json|x-ndjson|toml|sql)$)/u;
const namelessTypes: ReadonlySet<string> = new Set(['', 'application/octet-stream', 'binary/octet-stream', 'unknown/unknown']);

/** Decides how to read a body: by the server's content type, and by the bytes where there is none. */
export function documentKind(contentType: string, bytes: Uint8Array): DocumentKind {
  const type = contentType.split(';', 1).join('').trim().toLowerCase();
  const start = Buffer.from(bytes.subarray(0, META_BYTES)).toString('latin1');
  if (type === 'application/pdf' || start.startsWith('%PDF-')) return 'pdf';
  if (type === 'text/html' || type === 'application/xhtml+xml') return 'html';
  if (textTypes.test(type)) return isBinary(start) ? 'binary' : 'text';
  return namelessTypes.has(type) ? sniffed(start) : 'binary';
}

function sniffed(start: string): DocumentKind {
  if (isBinary(start)) return 'binary';
  return /^\s*<(?:!doctype html|html|head|body)\b/iu.test(start) ? 'html' : 'text';
}

/** UTF-16 has zeros, too, but begins with a byte order mark. */
function isBinary(start: string): boolean {
  return start.includes('\u0000') && !start.startsWith('\u00ff\u00fe') && !start.startsWith('\u00fe\u00ff');
}

/**
 * A body's text. What counts, in this order: a byte order mark, the header's charset, the page's own; UTF-8, and where
 * the bytes are none, the charset of old pages that declare none.
 */
export function decodeDocument(contentType: string, bytes: Uint8Array): string {
  const header = charsetName.exec(contentType)?.[1];
  const head = Buffer.from(bytes.subarray(0, META_BYTES)).toString('latin1');
  const meta = head
    .matchAll(metaElement)
    .map(([, attributes = '']) => charsetName.exec(attributes)?.[1])
    .find((name) => name !== undefined);
  const decoder = byteOrderMark(bytes) ?? decoderOf(header) ?? decoderOf(meta);
  if (decoder !== undefined) return decoder.decode(bytes);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder('windows-1252').decode(bytes);
  }
}

function byteOrderMark(bytes: Uint8Array): InstanceType<typeof TextDecoder> | undefined {
  const [first, second, third] = bytes;
  if (first === 0xef && second === 0xbb && third === 0xbf) return new TextDecoder('utf-8');
  if (first === 0xff && second === 0xfe) return new TextDecoder('utf-16le');
  return first === 0xfe && second === 0xff ? new TextDecoder('utf-16be') : undefined;
}

/** undefined for an unknown charset. */
function decoderOf(charset: string | undefined): InstanceType<typeof TextDecoder> | undefined {
  if (charset === undefined) return undefined;
  try {
    return new TextDecoder(charset);
  } catch {
    return undefined;
  }
}
