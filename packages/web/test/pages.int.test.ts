import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { DocumentReader, Outbound, WebPages, type WebDocument } from '@concierge/web';
import type { OutgoingHttpHeaders } from 'node:http';
import { LocalServer } from './local-server.ts';

const signal = new AbortController().signal;
let server: LocalServer;
let pages: WebPages;

beforeEach(async () => {
  server = await new LocalServer().listen();
  pages = new WebPages(new Outbound({ allow: [server.place] }), new DocumentReader());
});

afterEach(async () => {
  await server[Symbol.asyncDispose]();
});

const html = { 'content-type': 'text/html; charset=utf-8' };

async function read(body: string | Uint8Array, headers: OutgoingHttpHeaders = html, path = '/page'): Promise<WebDocument> {
  server.answer((_request, response) => response.writeHead(200, headers).end(body));
  return pages.open({ url: server.url(path), tenantId: 'acme', reader: 'acme', policy: {}, signal });
}

const paragraphs = '<p>The shop has been open since 1985, and it sells bread, cakes and coffee to everybody who comes by.</p>'.repeat(8);
const article = `<!doctype html><html><head><title>Bread &amp; more</title><script>track()</script></head><body>
<nav><a href="/a">Home</a> <a href="/b">Imprint</a></nav>
<article><h1>Opening hours</h1>${paragraphs}
<p>See <a href="../prices?x=1#top">the prices</a>, <a href="javascript:alert(1)">this</a> and <img src="/x.png" alt="the oven">.</p>
<table><tr><th>Day</th><th>Hours</th></tr><tr><td>Monday</td><td>9 to 18</td></tr></table>
<pre><code>call()</code></pre></article>
<footer>Cookies</footer></body></html>`;

describe('a page is read', () => {
  it('as Markdown of its article, with a title and whole links', async () => {
    const { title, text, url, isPlain } = await read(article, html, '/shop/hours');
    expect({ title, url, isPlain }).toEqual({ title: 'Bread & more', url: server.url('/shop/hours'), isPlain: false });
    expect(text).toContain('The shop has been open since 1985');
    expect(text).toContain(`[the prices](${server.url('/prices?x=1#top')})`);
    expect(text).toContain('[image: the oven]');
    expect(text).toMatch(/\| Day \| Hours \|\n\| --- \| --- \|\n\| Monday \| 9 to 18 \|/u);
    expect(text).toContain('```\ncall()\n```');
    expect(text).not.toMatch(/track\(\)|javascript:|Cookies/u);
  });

  it('as all its words where there is no article', async () => {
    const { text } = await read(`<title>List</title><ul>${'<li><a href="/item">One</a>'.repeat(5)}</ul>`);
    expect(text).toContain(`[One](${server.url('/item')})`);
  });

  it('with what stands in its forms, but for what is filled in there', async () => {
    const order = '<label>Size <select><option>Small<option>Large</select></label><input value="3"><button>Buy</button>';
    const prices = `<form action="/cart"><p>Price: 12 Euro</p><table><tr><th>Day</th></tr><tr><td>Monday</td></tr></table>${order}</form>`;
    const shop = await read(`<title>Bread</title><article><h1>Bread</h1>${paragraphs}${prices}</article>`);
    expect(shop.text).toContain('Price: 12 Euro');
    expect(shop.text).toContain('| Monday |');
    const rooms = await read(`<h1>Rooms</h1><form>${'<p>A room, 80 Euro.</p>'.repeat(3)}${order}</form>`, html, '/rooms');
    expect(rooms).toMatchObject({ text: expect.stringContaining('A room, 80 Euro.'), isPlain: false });
    expect(shop.text + rooms.text).not.toMatch(/Large|Buy/u);
  });

  it('with the base that it names itself', async () => {
    const { text } = await read(`<head><base href="https://example.com/docs/"></head><body><p><a href="one">One</a></p></body>`);
    expect(text).toContain('[One](https://example.com/docs/one)');
  });

  it.each([
    ['the header', { 'content-type': 'text/html; charset=iso-8859-1' }, Buffer.from('<p>Gr\u00fc\u00dfe</p>', 'latin1')],
    ['the page', { 'content-type': 'text/html' }, Buffer.from('<meta charset="windows-1252"><p>Gr\u00fc\u00dfe</p>', 'latin1')],
    ['a byte order mark', { 'content-type': 'text/html; charset=latin1' }, Buffer.from('\ufeff<p>Gr\u00fc\u00dfe</p>', 'utf8')],
    ['UTF-16 with a mark', { 'content-type': 'text/plain' }, Buffer.from('\ufeffGr\u00fc\u00dfe', 'utf16le')],
    ['nothing, in UTF-8', { 'content-type': 'text/html' }, Buffer.from('<p>Gr\u00fc\u00dfe</p>', 'utf8')],
    ['nothing, in what is none', { 'content-type': 'text/html' }, Buffer.from('<p>Gr\u00fc\u00dfe</p>', 'latin1')],
    ['an unknown name', { 'content-type': 'text/html; charset=nonsense' }, Buffer.from('<p>Gr\u00fc\u00dfe</p>', 'utf8')],
  ])('in the charset that %s declares', async (_where, headers, body) => {
    expect((await read(body, headers)).text).toBe('Gr\u00fc\u00dfe');
  });

  it('as it is when it is JSON or plain text', async () => {
    expect((await read('{"a": [1, 2]}', { 'content-type': 'application/json' })).text).toBe('{"a": [1, 2]}');
    expect((await read('# Title\n<b>', { 'content-type': 'text/markdown' }, '/b')).text).toBe('# Title\n<b>');
    expect((await read('just words', {}, '/c')).text).toBe('just words');
    expect((await read('<!doctype html><p>words', {}, '/d')).text).toBe('words');
  });

  it('when it is a PDF with text', async () => {
    expect((await read(buildPdf('Price list'), { 'content-type': 'application/pdf' })).text).toContain('Price list');
    await expect(read(buildPdf(''), { 'content-type': 'application/pdf' }, '/b')).rejects.toThrow(/no text/u);
    await expect(read('%PDF-1.7 nonsense', {}, '/c')).rejects.toThrow(/could not be read/u);
  });

  it('not at all when it is an image, binary, empty or an error', async () => {
    await expect(read('\u0089PNG', { 'content-type': 'image/png' })).rejects.toThrow('It is no text but image/png.');
    await expect(read(Buffer.from([1, 0, 2]), { 'content-type': 'text/plain' })).rejects.toThrow(/no text/u);
    await expect(read(Buffer.from([1, 0, 2]), {})).rejects.toThrow('It is no text but binary data.');
    await expect(read('', html)).rejects.toThrow(/empty/u);
    server.answer((_request, response) => response.writeHead(404, html).end('<p>nothing'));
    await expect(pages.open({ url: server.url('/gone'), tenantId: 'acme', reader: 'acme', policy: {}, signal })).rejects.toThrow(
      /status 404/u,
    );
  });
});

describe('a hostile page', () => {
  it.each([
    ['a hundred thousand nested elements', `<title>Deep</title>${'<div>'.repeat(100_000)}words<p>more`],
    ['a huge table', `<title>Deep</title>words${`<table>${'<tr><td>1<td>2'.repeat(60_000)}</table>`}more`],
    ['nested tables', `<title>Deep</title>words${'<table><tr><td>'.repeat(20_000)}more`],
    ['nothing but brackets', `<title>Deep</title>words more${'<'.repeat(500_000)}`],
    ['a list without end', `<title>Deep</title>words${'<ul><li>'.repeat(50_000)}more`],
  ])('gives its words all the same: %s', async (_what, body) => {
    const { title, text } = await read(body);
    expect(title).toBe('Deep');
    expect(text).toMatch(/^words[^]*more/u);
  });

  it('costs no more than its own process', async () => {
    const attributes = Array.from({ length: 200_000 }, (_value, index) => `a${String(index)}=x`).join(' ');
    let ticks = 0;
    const timer = setInterval(() => (ticks += 1), 1);
    await Promise.all([
      read(`<p ${attributes}>words</p>`).catch(() => 'given up'),
      read(`${'<a><b>'.repeat(100_000)}words`, html, '/b').catch(() => 'given up'),
    ]);
    clearInterval(timer);
    expect(ticks).toBeGreaterThan(10);
  });

  it('is given up with its turn', async () => {
    const caller = new AbortController();
    server.answer((_request, response) => {
      response.writeHead(200, html).end('<div>'.repeat(300_000), () => caller.abort(new Error('enough')));
    });
    await expect(pages.open({ url: server.url(), tenantId: 'acme', reader: 'acme', policy: {}, signal: caller.signal })).rejects.toThrow(
      'enough',
    );
  });

  it('is too large before it is read', async () => {
    server.answer((_request, response) => response.writeHead(200, html).end('x'.repeat(2000)));
    await expect(pages.open({ url: server.url(), tenantId: 'acme', reader: 'acme', policy: { maxBytes: 1000 }, signal })).rejects.toThrow(
      /larger/u,
    );
  });
});

describe('a page that was opened', () => {
  it('is there for its reader for a while, and for no other reader', async () => {
    const open = async (reader: string, path = '/'): Promise<WebDocument> =>
      pages.open({ url: server.url(path), tenantId: 'acme', reader, policy: {}, signal });
    await open('acme');
    await open('acme', '/#elsewhere');
    expect(server.requests).toHaveLength(1);
    await open('other');
    await open('acme', '/second');
    expect(server.requests).toHaveLength(3);
  });
});

/** The smallest PDF that contains text. */
function buildPdf(text: string): string {
  const content = text === '' ? '' : `BT /F1 24 Tf 72 700 Td (${text}) Tj ET`;
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>',
    `<< /Length ${String(content.length)} >>\nstream\n${content}\nendstream`,
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
  ];
  let pdf = '%PDF-1.4\n';
  const places = objects.map((object, index) => {
    const place = pdf.length;
    pdf += `${String(index + 1)} 0 obj\n${object}\nendobj\n`;
    return `${String(place).padStart(10, '0')} 00000 n \n`;
  });
  const size = String(objects.length + 1);
  return `${pdf}xref\n0 ${size}\n0000000000 65535 f \n${places.join('')}trailer\n<< /Size ${size} /Root 1 0 R >>\nstartxref\n${String(pdf.length)}\n%%EOF\n`;
}
