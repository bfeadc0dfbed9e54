import { createHash } from 'node:crypto';

const etagHexDigits = 32;

/** The strong entity tag of a file's content: quoted, as it stands in the header. */
export function etagOf(content: Uint8Array | string): string {
  return `"${createHash('sha256').update(content).digest('hex').slice(0, etagHexDigits)}"`;
}

/** Does an `If-Match` or `If-None-Match` header name this tag? `*` names any that exists; weak tags never match (RFC 9110, 13.1). */
export function etagMatches(header: string, etag: string | undefined): boolean {
  if (etag === undefined) return false;
  return header.trim() === '*' || header.split(',').some((tag) => tag.trim() === etag);
}
