/** One result of a search. */
export interface SearchHit {
  readonly title: string;
  readonly url: string;
  readonly snippet: string;
}

export interface SearchRequest {
  readonly url: URL;
  readonly init: { readonly method: 'GET' | 'POST'; readonly headers: Readonly<Record<string, string>>; readonly body?: string };
}

export interface SearchQuery {
  readonly query: string;
  readonly count: number;
}

/** How one search service is asked, and what its answers look like. */
export interface SearchEngine {
  /** Its default URL, which the operator may replace; undefined: it has none. */
  readonly url: string | undefined;
  request(base: string, key: string, query: SearchQuery): SearchRequest;
  /** Throws for an answer in another form. */
  hits(answer: unknown): SearchHit[];
  /** Statuses that mean more here than elsewhere. */
  readonly failures: Readonly<Record<number, SearchFailure>>;
}

export type SearchFailure = 'bad_key' | 'quota' | 'busy' | 'format_off' | 'bad_query' | 'down';
