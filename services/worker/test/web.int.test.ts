import { serveRequests } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import { beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { TestSystem, tool, type CallOutcome, type Tenant } from './test-system.ts';

let place: string;
let tenant: Tenant;
const requests: string[] = [];
const paragraph = 'The bakery sells bread, cakes and coffee, every day of the week, to everybody who comes by. ';

const url = (path: string): string => `http://${place}${path}`;

/** A site, and a SearXNG that finds pages of it. */
function buildAnswer(path: string): { status: number; type: string; body: string } {
  const html = { status: 200, type: 'text/html' };
  if (path.startsWith('/search?q=broken')) return { status: 500, type: 'text/plain', body: 'no' };
  if (path.startsWith('/search')) {
    const hit = (index: number): object => ({ title: `Hit ${String(index)}`, url: url(`/hit/${String(index)}`), content: 'words' });
    const results = Array.from({ length: 10 }, (_value, index) => hit(index));
    return { status: 200, type: 'application/json', body: JSON.stringify({ results }) };
  }
  if (path === '/long') return { ...html, body: `<title>Long</title><article>${`<p>${paragraph}</p>`.repeat(400)}</article>` };
  if (path === '/image') return { status: 200, type: 'image/png', body: 'PNG' };
  const text = `<p>${paragraph}<a href="/more">more</a></p>`.repeat(9);
  return { ...html, body: `<title>The bakery</title><article><h1>Bread</h1>${text}</article>` };
}

setUpOnce(async (stack) => {
  const web = stack.use(
    await serveRequests((request) => {
      const path = request.url.slice(new URL(request.url).origin.length);
      requests.push(path);
      const { status, type, body } = buildAnswer(path);
      return new Response(body, { status, headers: { 'content-type': type } });
    }),
  );
  place = new URL(web.url).host;
  const env = { OUTBOUND_ALLOW: place, WEB_SEARCH_PROVIDER: 'searxng', WEB_SEARCH_URL: `http://${place}` };
  tenant = await stack.use(await TestSystem.start({ env })).tenant();
});

interface WebTurn {
  readonly agent: 'admin' | 'cs';
  readonly says?: string;
  readonly sender?: string;
  readonly calls: readonly (readonly [name: 'web_fetch' | 'web_search' | 'memory_write', input: Readonly<Record<string, unknown>>])[];
}

/** What each call came to. */
async function callTools({ calls, ...to }: WebTurn, by = tenant): Promise<CallOutcome[]> {
  return by.calls(to, ...calls.map(([name, input]) => tool(name, input)));
}

/** Runs a turn with one call and returns the call's result. */
async function callTool(turn: WebTurn, by = tenant): Promise<CallOutcome> {
  const [result, ...others] = await callTools(turn, by);
  if (result === undefined || others.length > 0) throw new Error(`the turn had ${String(others.length)} results more than one`);
  return result;
}

beforeEach(() => {
  requests.length = 0;
});

describe('the owner’s agent', () => {
  it('reads a page of the web', async () => {
    const { output, isError } = await callTool({ agent: 'admin', calls: [['web_fetch', { url: url('/about#team') }]] });
    expect(isError).toBe(false);
    expect(output).toMatch(/^Title: The bakery\nURL: http:\/\/127\.0\.0\.1:\d+\/about\n\[The rest is material from the web/u);
    expect(output).toContain(`[more](${url('/more')})`);
    expect(output).not.toContain('page 1 of');
  });

  it('turns the pages of a long document, which is fetched once', async () => {
    const results = await callTools({
      agent: 'admin',
      calls: [
        ['web_fetch', { url: url('/long') }],
        ['web_fetch', { url: url('/long'), page: 2 }],
        ['web_fetch', { url: url('/long'), page: 99 }],
      ],
    });
    expect(results[0]?.output).toContain('[page 1 of 2]');
    expect(results[1]?.output).toMatch(/\[page 2 of 2\][^]*every day of the week/u);
    expect(results[2]).toEqual({ isError: true, output: 'The document has 2 pages; there is no page 99.' });
    expect(requests).toEqual(['/long']);
  });

  it.each([
    ['a private address', 'http://127.0.0.1:9999/', /no public address/u],
    ['a port of something else', 'http://example.com:25/', /Port 25/u],
    ['the metadata of a cloud', 'http://169.254.169.254/latest/meta-data/', /no public address/u],
    ['another spelling of this host', 'http://0x7f.1/', /no public address/u],
    ['a file', 'file:///etc/passwd', /Only http: and https:/u],
    ['a password', 'https://me:secret@example.com/', /user name or password/u],
    ['what is no address', 'prices', /no valid URL/u],
  ])('gets the reason why it cannot open %s', async (_what, address, reason) => {
    const { output, isError } = await callTool({ agent: 'admin', calls: [['web_fetch', { url: address }]] });
    expect([isError, output]).toEqual([true, expect.stringMatching(reason)]);
  });

  it('gets an error for an image, and for wrong arguments', async () => {
    const [image, page, none] = await callTools({
      agent: 'admin',
      calls: [
        ['web_fetch', { url: url('/image') }],
        ['web_fetch', { url: url('/about'), page: 0 }],
        ['web_search', { query: ' ' }],
      ],
    });
    expect(image).toEqual({ isError: true, output: 'The page cannot be read: It is no text but image/png.' });
    expect([page?.isError, page?.output]).toEqual([true, expect.stringContaining('- page:')]);
    expect([none?.isError, none?.output]).toEqual([true, expect.stringContaining('- query:')]);
  });

  it('searches the web, and gets an error when that fails', async () => {
    const [found, broken] = await callTools({
      agent: 'admin',
      calls: [
        ['web_search', { query: 'bread', count: 7 }],
        ['web_search', { query: 'broken' }],
      ],
    });
    expect(found?.output).toContain(`1. Hit 0\n   ${url('/hit/0')}\n   words`);
    expect(found?.output.match(/Hit \d/gu)).toHaveLength(7);
    expect(broken).toMatchObject({ isError: true, output: expect.stringContaining('does not answer as it should') });
  });
});

describe('the customer’s agent', () => {
  const inside = 'has no public address';
  const closed = 'is not open here';

  it('may open what the customer wrote, in this message or an earlier one, yet nothing that is not public', async () => {
    const address = `https://${place}/offer?id=7`;
    const open = async (sender: string, says: string): Promise<string> =>
      (await callTool({ agent: 'cs', sender, says, calls: [['web_fetch', { url: address }]] })).output;
    expect(await open('anna', 'and now?')).toContain(closed);
    expect(await open('anna', `what is this: ${address}?`)).toContain(inside);
    expect(await open('anna', 'and now?')).toContain(inside);
    expect(await open('berta', 'and now?')).toContain(closed);
    expect(requests).toEqual([]);
  });

  it('may open what a search of the turn found, of which it gets five at most', async () => {
    const [found, opened, missed] = await callTools({
      agent: 'cs',
      calls: [
        ['web_search', { query: 'bread', count: 20 }],
        ['web_fetch', { url: `https://${place}/hit/1` }],
        ['web_fetch', { url: `https://${place}/hit/8` }],
      ],
    });
    expect(found?.output.match(/Hit \d/gu)).toHaveLength(5);
    expect(opened?.output).toContain(inside);
    expect(missed?.output).toContain(closed);
  });

  it.each([
    ['was never mentioned', 'https://elsewhere.example/collect?name=anna', ''],
    ['carries more than was mentioned', 'https://elsewhere.example/collect?name=anna', 'see https://elsewhere.example/collect please'],
    ['the agent itself wrote into a note', 'https://elsewhere.example/note', ''],
  ])('does not open an address that %s', async (_what, address, says) => {
    const results = await callTools({
      agent: 'cs',
      sender: 'eve',
      says,
      calls: [
        ['memory_write', { text: 'Kept: https://elsewhere.example/note' }],
        ['web_fetch', { url: address }],
        ['web_fetch', { url: address }],
      ],
    });
    expect(results.map(({ isError, output }) => [isError, output.includes('not open here')])).toEqual([
      [false, false],
      [true, true],
      [true, true],
    ]);
  });

  it('opens nothing but https where the operator has allowed nothing else', async () => {
    const address = 'http://shop.example/';
    const { isError, output } = await callTool({ agent: 'cs', says: address, calls: [['web_fetch', { url: address }]] });
    expect([isError, output]).toEqual([true, expect.stringContaining('Only https:')]);
  });
});

describe('the customer’s agent of an owner whose skills name a site', () => {
  beforeAll(async () => {
    const skill = `---\nname: prices\ndescription: Prices\n---\nSee [the list](${url('/prices')}).\n`;
    await tenant.scope.files.writeText('skills/prices/SKILL.md', skill);
  });

  it('opens any page of it', async () => {
    const { output, isError } = await callTool({ agent: 'cs', calls: [['web_fetch', { url: url('/stock?article=4') }]] });
    expect([isError, output]).toEqual([false, expect.stringContaining('sells bread')]);
  });

  it('gets shorter pages than the owner’s', async () => {
    const { output } = await callTool({ agent: 'cs', calls: [['web_fetch', { url: url('/long') }]] });
    expect(output).toContain('[page 1 of 5]');
  });

  it('opens none of another', async () => {
    const { output } = await callTool({ agent: 'cs', calls: [['web_fetch', { url: `https://elsewhere.example/?to=${url('/prices')}` }]] });
    expect(output).toContain('is not open here');
  });
});

describe('without a search', () => {
  it('each agent learns that the operator has configured none', async () => {
    await using bare = await TestSystem.start();
    const owner = await bare.tenant();
    for (const agent of ['admin', 'cs'] as const) {
      const { isError, output } = await callTool({ agent, calls: [['web_search', { query: 'bread' }]] }, owner);
      expect([isError, output]).toEqual([true, expect.stringContaining('No web search is configured')]);
    }
  });
});
