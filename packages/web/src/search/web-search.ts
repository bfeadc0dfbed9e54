import { withoutEnding } from '@concierge/contract';
import { Outbound, type OutboundFetch } from '../outbound/outbound.ts';
import { toHostPort } from '../outbound/outbound-url.ts';
import { engines, type SearchEngine, type SearchFailure, type SearchHit, type SearchQuery } from './engines.ts';

const TIMEOUT_MS = 15_000;
const ANSWER_MAX_BYTES = 2 * 1024 * 1024;
const SNIPPET_MAX_CHARACTERS = 600;
const TITLE_MAX_CHARACTERS = 200;

export interface WebSearchSettings {
  readonly provider: keyof typeof engines;
  /** Undefined: the provider's own. */
  readonly url?: string | undefined;
  readonly key?: string | undefined;
}

const explanations: Readonly<Record<SearchFailure, string>> = {
  bad_key: 'The search service refuses the key that the operator configured. Only the operator can change that; go on without a search.',
  quota: 'The search service’s quota is used up. Only the operator can change that; go on without a search.',
  busy: 'The search service gets too many requests at the moment. Try again in a minute.',
  format_off:
    'The search service refuses (SearXNG: is the format json switched on?). Only the operator can change that; go on without a search.',
  bad_query: 'The search service does not accept this query. Write it shorter and simpler.',
  down: 'The search service does not answer as it should at the moment. Try again later.',
};

/** A search failed. The message is fit for a model; the key and the address are never in it. */
export class SearchError extends Error {
  override readonly name = 'SearchError';
  readonly failure: SearchFailure;

  constructor(failure: SearchFailure, options: { readonly cause?: unknown } = {}) {
    super(explanations[failure], options);
    this.failure = failure;
  }
}

/**
 * The search service that the operator chose. Its address is the operator's and may be private; no other URL is asked.
 */
export class WebSearch {
  readonly #engine: SearchEngine;
  readonly #base: string;
  readonly #key: string;
  readonly #fetch: OutboundFetch;

  /** @throws Error for a provider that has no default address and got none */
  constructor({ provider, url, key }: WebSearchSettings) {
    this.#engine = engines[provider];
    const base = url ?? this.#engine.url;
    if (base === undefined) throw new Error(`${provider} needs an address.`);
    this.#base = withoutEnding(base, '/');
    this.#key = key ?? '';
    // Redirects to other hosts are refused: the key goes with the request.
    const service = new URL(this.#base);
    const outbound = new Outbound({ allow: [toHostPort(service)] });
    this.#fetch = outbound.fetcher({ hosts: [service.hostname], maxBytes: ANSWER_MAX_BYTES, timeoutMs: TIMEOUT_MS });
  }

  /** At most `count` results, best first. @throws SearchError, or the signal's reason */
  async search(query: SearchQuery, signal: AbortSignal): Promise<SearchHit[]> {
    const { url, init } = this.#engine.request(this.#base, this.#key, query);
    try {
      const response = await this.#fetch(url, { ...init, redirect: 'error', signal });
      if (!response.ok) {
        await response.body?.cancel();
        throw new SearchError(this.#engine.failures[response.status] ?? 'down', { cause: `status ${String(response.status)}` });
      }
      const hits = this.#engine.hits(await response.json());
      return hits
        .filter(({ url: found }) => isWebAddress(found))
        .slice(0, query.count)
        .map(trimmed);
    } catch (error) {
      signal.throwIfAborted();
      throw error instanceof SearchError ? error : new SearchError('down', { cause: error });
    }
  }
}

function isWebAddress(url: string): boolean {
  return /^https?:$/u.test(URL.parse(url)?.protocol ?? '');
}

function trimmed({ title, url, snippet }: SearchHit): SearchHit {
  return { title: oneLine(title, TITLE_MAX_CHARACTERS), url, snippet: oneLine(snippet, SNIPPET_MAX_CHARACTERS) };
}

function oneLine(text: string, maxCharacters: number): string {
  const line = text.replaceAll(/\s+/gu, ' ').trim();
  return line.length <= maxCharacters ? line : `${line.slice(0, maxCharacters).toWellFormed()}…`;
}
