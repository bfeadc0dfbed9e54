import { LRUCache } from 'lru-cache';
import type { Outbound, OutboundPolicy } from '../outbound/outbound.ts';
import { OutboundError } from '../outbound/outbound-error.ts';
import { readOutboundUrl } from '../outbound/outbound-url.ts';
import { UnreadableError, type DocumentReader, type ReadDocument } from './document-reader.ts';

const TEXT_MAX_CHARACTERS = 1_000_000;
const CACHE_TTL_MS = 5 * 60_000;
/** Readers whose pages are kept at once, and what is kept for each. */
const CACHED_READERS_MAX = 32;
const CACHED_CHARACTERS_MAX = 2 * TEXT_MAX_CHARACTERS;

export interface WebDocument extends ReadDocument {
  /** After redirects. */
  readonly url: string;
}

export interface OpenPage {
  readonly url: string;
  /** Whose documents its reading waits for. */
  readonly tenantId: string;
  /** Whose page it is: what one reader opened, another never gets, nor learns of. A tenant and what it may do. */
  readonly reader: string;
  readonly policy: Partial<OutboundPolicy>;
  readonly signal: AbortSignal;
}

/**
 * Pages of the web as text, kept for a few minutes for the reader that opened them, so that a second page of one costs
 * nothing.
 */
export class WebPages {
  readonly #outbound: Outbound;
  readonly #documents: DocumentReader;
  readonly #kept = new LRUCache<string, LRUCache<string, WebDocument>>({ max: CACHED_READERS_MAX });

  constructor(outbound: Outbound, documents: DocumentReader) {
    this.#outbound = outbound;
    this.#documents = documents;
  }

  /** @throws OutboundError, UnreadableError, or the signal's reason */
  async open({ url: text, tenantId, reader, policy, signal }: OpenPage): Promise<WebDocument> {
    const url = readOutboundUrl(text).href;
    const known = this.#findKept(reader).get(url);
    if (known !== undefined) return known;
    const got = await this.#outbound.get(url, { ...policy, headers: { accept: ACCEPT }, signal });
    if (got.status >= 400) throw new OutboundError('bad_answer', `The server answers with status ${String(got.status)}.`);
    const contentType = got.headers.get('content-type') ?? '';
    if (got.bytes.byteLength === 0) throw new UnreadableError('The answer is empty.');
    const task = { bytes: got.bytes, contentType, url: got.url, maxCharacters: TEXT_MAX_CHARACTERS };
    const document = { ...(await this.#documents.read(task, { tenantId, signal })), url: got.url };
    this.#findKept(reader).set(url, document);
    return document;
  }

  #findKept(reader: string): LRUCache<string, WebDocument> {
    const kept = this.#kept.get(reader) ?? keptDocuments();
    this.#kept.set(reader, kept);
    return kept;
  }
}

const ACCEPT =
  'text/html,application/xhtml+xml,text/markdown;q=0.9,text/plain;q=0.9,application/json;q=0.9,application/pdf;q=0.8,*/*;q=0.5';

function keptDocuments(): LRUCache<string, WebDocument> {
  return new LRUCache({ maxSize: CACHED_CHARACTERS_MAX, sizeCalculation: ({ text }) => text.length + 1000, ttl: CACHE_TTL_MS });
}

/** How far back from a page's end a paragraph or a line may end it. */
const BREAK_SHARE = 0.8;

/**
 * The text in pages of at most `maxCharacters`, cut at the end of a paragraph or a line where there is one; together
 * the whole.
 */
export function splitPages(text: string, maxCharacters: number): string[] {
  const pages: string[] = [];
  for (let start = 0; start < text.length;) {
    const end = pageEnd(text, start, maxCharacters);
    pages.push(text.slice(start, end));
    start = end;
  }
  return pages.length === 0 ? [''] : pages;
}

function pageEnd(text: string, start: number, maxCharacters: number): number {
  const most = start + maxCharacters;
  if (most >= text.length) return text.length;
  const least = start + Math.floor(maxCharacters * BREAK_SHARE);
  for (const separator of ['\n\n', '\n', ' ']) {
    const at = text.lastIndexOf(separator, most - separator.length);
    if (at >= least) return at + separator.length;
  }
  // Never between the halves of a character.
  return /[\uD800-\uDBFF]/u.test(text.charAt(most - 1)) ? most - 1 : most;
}
