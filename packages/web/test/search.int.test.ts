import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { SearchError, WebSearch, type WebSearchSettings } from '@concierge/web';
import { LocalServer } from './local-server.ts';

const signal = new AbortController().signal;
const KEY = 'key-that-nobody-sees';
let server: LocalServer;

beforeEach(async () => {
  server = await new LocalServer().listen();
});

afterEach(async () => {
  await server[Symbol.asyncDispose]();
});

const createSearch = (provider: WebSearchSettings['provider'], path = ''): WebSearch =>
  new WebSearch({ provider, url: server.url(path), key: KEY });

function answer(body: unknown, status = 200): void {
  server.answer((_request, response) => response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body)));
}

const found = [
  { title: 'One  page', url: 'https://one.example/', snippet: 'first words' },
  { title: '', url: 'https://two.example/', snippet: '' },
];
const hits = [{ ...found[0], title: 'One page' }, found[1]];

describe('a web search', () => {
  it('asks Brave as Brave wants to be asked', async () => {
    answer({
      type: 'search',
      web: { type: 'search', results: found.map(({ snippet, ...hit }) => ({ ...hit, description: snippet, language: 'en' })) },
    });
    expect(await createSearch('brave').search({ query: 'bread & cake', count: 3 }, signal)).toEqual(hits);
    const [request] = server.requests;
    const url = new URL(request?.path ?? '', server.url());
    expect([request?.method, url.pathname, url.searchParams.get('q'), url.searchParams.get('count')]).toEqual([
      'GET',
      '/res/v1/web/search',
      'bread & cake',
      '3',
    ]);
    expect(request?.headers['x-subscription-token']).toBe(KEY);
  });

  it('asks Tavily as Tavily wants to be asked', async () => {
    answer({
      query: 'q',
      answer: null,
      images: [],
      results: found.map(({ snippet, ...hit }) => ({ ...hit, content: snippet, score: 0.9, raw_content: null })),
    });
    expect(await createSearch('tavily').search({ query: 'bread', count: 2 }, signal)).toEqual(hits);
    const [request] = server.requests;
    expect([request?.method, request?.path, request?.headers.authorization]).toEqual(['POST', '/search', `Bearer ${KEY}`]);
    expect(JSON.parse(request?.body ?? '')).toMatchObject({ query: 'bread', max_results: 2 });
  });

  it('asks SearXNG, under a path too, and takes of its many results what was asked for', async () => {
    const results = [...found, ...found, ...found].map(({ snippet, ...hit }) => ({ ...hit, content: snippet, engine: 'x', score: 1 }));
    answer({ query: 'q', number_of_results: 6, results, unresponsive_engines: [] });
    expect(await createSearch('searxng', '/searx/').search({ query: 'bread', count: 2 }, signal)).toEqual(hits);
    expect(server.requests[0]?.path).toBe('/searx/search?q=bread&format=json');
  });

  it('has no results where there are none', async () => {
    answer({ type: 'search', mixed: {} });
    expect(await createSearch('brave').search({ query: 'zxcv', count: 5 }, signal)).toEqual([]);
  });

  it('gives nothing that is no web address, and nothing longer than is useful', async () => {
    answer({
      results: [
        { title: 't', url: 'javascript:alert(1)', content: '' },
        { title: 't'.repeat(1000), url: 'https://one.example/', content: 'w '.repeat(5000) },
      ],
    });
    const [only, ...others] = await createSearch('tavily').search({ query: 'q', count: 5 }, signal);
    expect([only?.url, others]).toEqual(['https://one.example/', []]);
    expect((only?.title.length ?? 0) + (only?.snippet.length ?? 0)).toBeLessThan(900);
  });

  it.each([
    ['brave', 401, 'bad_key'],
    ['brave', 422, 'bad_key'],
    ['brave', 429, 'busy'],
    ['brave', 500, 'down'],
    ['tavily', 400, 'bad_query'],
    ['tavily', 401, 'bad_key'],
    ['tavily', 432, 'quota'],
    ['tavily', 433, 'quota'],
    ['searxng', 403, 'format_off'],
    ['searxng', 429, 'busy'],
    ['searxng', 503, 'down'],
    ['searxng', 302, 'down'],
  ] as const)('that %s answers with %i fails as %s, without a word of the key', async (provider, status, failure) => {
    answer({ error: `bad token ${KEY}` }, status);
    const error: unknown = await createSearch(provider)
      .search({ query: 'q', count: 5 }, signal)
      .catch((reason: unknown) => reason);
    expect(error).toMatchObject({ name: 'SearchError', failure });
    expect(error instanceof SearchError ? error.message : KEY).not.toContain(KEY);
  });

  it('takes the key nowhere else', async () => {
    await using other = await new LocalServer().listen();
    server.answer((_request, response) => response.writeHead(307, { location: other.url() }).end());
    await expect(createSearch('tavily').search({ query: 'q', count: 5 }, signal)).rejects.toMatchObject({ failure: 'down' });
    expect(other.requests).toEqual([]);
  });

  it('that is answered with something else, or not at all, is down', async () => {
    for (const body of ['no object', { results: 'none' }, [1]]) {
      answer(body);
      await expect(createSearch('tavily').search({ query: 'q', count: 5 }, signal)).rejects.toMatchObject({ failure: 'down' });
    }
    const gone = createSearch('brave');
    await server[Symbol.asyncDispose]();
    await expect(gone.search({ query: 'q', count: 5 }, signal)).rejects.toMatchObject({ failure: 'down' });
    server = await new LocalServer().listen();
  });

  it('ends with its caller', async () => {
    const caller = new AbortController();
    server.answer(() => {
      caller.abort(new Error('enough'));
    });
    await expect(createSearch('brave').search({ query: 'q', count: 5 }, caller.signal)).rejects.toThrow('enough');
  });

  it('of SearXNG needs an address', () => {
    expect(() => new WebSearch({ provider: 'searxng' })).toThrow('searxng needs an address.');
  });
});
