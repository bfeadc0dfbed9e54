import { z } from 'zod';

/** One result of a search. */
export interface SearchHit {
  readonly title: string;
  readonly url: string;
  readonly snippet: string;
}

interface SearchRequest {
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

const text = z
  .string()
  .nullish()
  .transform((value) => value ?? '');
const DescribedHit = z
  .object({ title: text, url: z.string(), description: text })
  .transform(({ title, url, description }) => ({ title, url, snippet: description }));
const ContentHit = z
  .object({ title: text, url: z.string(), content: text })
  .transform(({ title, url, content }) => ({ title, url, snippet: content }));

const BraveAnswer = z.object({ web: z.object({ results: z.array(DescribedHit) }).nullish() });
const BRAVE_QUERY_MAX_CHARACTERS = 400;
const BRAVE_COUNT_MAX = 20;

const brave: SearchEngine = {
  url: 'https://api.search.brave.com',
  request: (base, key, { query, count }) => {
    const url = new URL(`${base}/res/v1/web/search`);
    url.searchParams.set('q', query.slice(0, BRAVE_QUERY_MAX_CHARACTERS).toWellFormed());
    url.searchParams.set('count', String(Math.min(count, BRAVE_COUNT_MAX)));
    // Otherwise matches come wrapped in <strong>.
    url.searchParams.set('text_decorations', 'false');
    url.searchParams.set('result_filter', 'web');
    return { url, init: { method: 'GET', headers: { accept: 'application/json', 'x-subscription-token': key } } };
  },
  hits: (answer) => BraveAnswer.parse(answer).web?.results ?? [],
  // 422 is its answer to a key in the wrong form; nothing else in the request can be wrong.
  failures: { 401: 'bad_key', 403: 'bad_key', 422: 'bad_key', 402: 'quota', 429: 'busy' },
};

const TavilyAnswer = z.object({ results: z.array(ContentHit) });

const tavily: SearchEngine = {
  url: 'https://api.tavily.com',
  request: (base, key, { query, count }) => ({
    url: new URL(`${base}/search`),
    init: {
      method: 'POST',
      headers: { accept: 'application/json', 'content-type': 'application/json', authorization: `Bearer ${key}` },
      body: JSON.stringify({ query, max_results: count, search_depth: 'basic' }),
    },
  }),
  hits: (answer) => TavilyAnswer.parse(answer).results,
  failures: { 400: 'bad_query', 401: 'bad_key', 403: 'bad_key', 429: 'busy', 432: 'quota', 433: 'quota' },
};

const SearxngAnswer = z.object({ results: z.array(ContentHit) });

const searxng: SearchEngine = {
  url: undefined,
  request: (base, key, { query }) => {
    const url = new URL(`${base}/search`);
    url.searchParams.set('q', query);
    url.searchParams.set('format', 'json');
    // It knows no keys itself; a proxy in front of it may.
    const authorization: Record<string, string> = key === '' ? {} : { authorization: `Bearer ${key}` };
    return { url, init: { method: 'GET', headers: { accept: 'application/json', ...authorization } } };
  },
  hits: (answer) => SearxngAnswer.parse(answer).results,
  failures: { 401: 'bad_key', 403: 'format_off', 429: 'busy' },
};

export const engines = { brave, tavily, searxng };
