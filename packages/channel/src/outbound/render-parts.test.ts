import { describe, expect, it } from '@jest/globals';
import { renderParts } from './render-parts.ts';
import { channelAdapters } from '../channel-adapters.ts';
import type { SendingRules } from './sending-rules.ts';

const allRules = Object.values(channelAdapters).flatMap((adapter) => adapter.allRules);

function findRules(name: string): SendingRules {
  const rules = allRules.find((known) => known.name === name);
  if (rules === undefined) throw new Error(`no rules ${name}`);
  return rules;
}

/** `(1/3) `: parts on a channel that keeps no order are numbered. */
const withoutNumber = (text: string): string => text.replace(/^\(\d+\/\d+\) /u, '');
const listTexts = (markdown: string, name: string): string[] => renderParts(markdown, findRules(name)).map(({ text }) => text);
const one = (markdown: string, name: string): string => listTexts(markdown, name).join('\n<next>\n');

const answer = `# Opening hours

We are **open** *today* until ~~six~~ \`20:00\`, see [our page](https://shop.example/a?b=1&c=2).
Call <tel:+4930123>.

- bread
- rolls
  1. with **seeds**
  2. without

> As the baker said

\`\`\`ts
const price = a < b && "c";
\`\`\``;

describe('Markdown in each channel’s own signs', () => {
  it('is signs of WhatsApp, with addresses after their words', () => {
    expect(one(answer, 'whatsapp')).toBe(`*Opening hours*

We are *open* _today_ until ~six~ \`20:00\`, see our page (https://shop.example/a?b=1&c=2).
Call tel:+4930123.

• bread
• rolls
  1. with *seeds*
  2. without

> As the baker said

\`\`\`
const price = a < b && "c";
\`\`\``);
  });

  it('is HTML for Telegram, escaped, with the language of code', () => {
    expect(one(answer, 'telegram')).toBe(`<b>Opening hours</b>

We are <b>open</b> <i>today</i> until <s>six</s> <code>20:00</code>, see <a href="https://shop.example/a?b=1&amp;c=2">our page</a>.
Call <a href="tel:+4930123">tel:+4930123</a>.

• bread
• rolls
  1. with <b>seeds</b>
  2. without

<blockquote>As the baker said</blockquote>

<pre><code class="language-ts">const price = a &lt; b &amp;&amp; "c";</code></pre>`);
  });

  it('is mrkdwn for Slack', () => {
    expect(one('**a** *b* ~~c~~ [d](https://e.example/?x=1&y=2|3) `f`\n\n> g', 'slack')).toBe(
      '*a* _b_ ~c~ <https://e.example/?x=1&amp;y=2%7C3|d> `f`\n\n> g',
    );
  });

  it('has emphasis around a link and not in its words', () => {
    expect(one('**see [here](https://e.example/)**', 'slack')).toBe('*see <https://e.example/|here>*');
    expect(one('[**here**](https://e.example/)', 'slack')).toBe('*<https://e.example/|here>*');
    expect(one('[**here**](https://e.example/)', 'telegram')).toBe('<b><a href="https://e.example/">here</a></b>');
  });

  it.each(['messenger', 'instagram'] as const)('is plain text for %s', (name) => {
    expect(one('# A\n\n**b** `c` [d](https://e.example/)\n\n> f', name)).toBe('A\n\nb c d (https://e.example/)\n\n> f');
  });

  it.each([
    ['a < b & "c"', 'telegram', 'a &lt; b &amp; "c"'],
    ['a < b & c > d', 'slack', 'a &lt; b &amp; c &gt; d'],
    ['<!channel> <@U1>', 'slack', '&lt;!channel&gt; &lt;@U1&gt;'],
    ['[all](!channel)', 'slack', 'all (!channel)'],
    ['say <b>hi</b>', 'telegram', 'say &lt;b&gt;hi&lt;/b&gt;'],
    ['[me](tg://user?id=1)', 'telegram', 'me (tg://user?id=1)'],
    ['[x](https://e.example/"onclick)', 'telegram', '<a href="https://e.example/&quot;onclick">x</a>'],
  ] as const)('lets no text of a model be more than text: %j for %s', (markdown, name, expected) => {
    expect(one(markdown, name)).toBe(expected);
  });

  it('puts the signs of WhatsApp and Slack around words, line by line', () => {
    expect(one('**one\ntwo**', 'whatsapp')).toBe('*one*\n*two*');
    expect(one('**one *two***', 'slack')).toBe('*one _two_*');
  });

  it.each([
    ['un**believ**able', 'whatsapp', 'un\u200B*believ*\u200Bable'],
    ['un**believ**able', 'slack', 'un\u200B*believ*\u200Bable'],
    ['**太字**です', 'whatsapp', '*太字*\u200Bです'],
    ['これは*斜体*です', 'slack', 'これは\u200B_斜体_\u200Bです'],
    ['the ~~old~~new price, `a`s', 'whatsapp', 'the ~old~\u200Bnew price, `a`\u200Bs'],
    ['**a b**, (**c**) **d *e*f**', 'slack', '*a b*, (*c*) *d _e_\u200Bf*'],
    ['un**believ**able', 'telegram', 'un<b>believ</b>able'],
  ] as const)('parts signs from the word that they touch, or the channel shows them: %j for %s', (markdown, name, expected) => {
    expect(one(markdown, name)).toBe(expected);
  });

  it('writes tables as lines, tasks as boxes and pictures as links', () => {
    expect(one('| a | b |\n|---|---|\n| 1 | 2 |\n\n- [x] done\n- [ ] open\n\n![map](https://e.example/m.png)', 'whatsapp')).toBe(
      '*a | b*\n1 | 2\n\n☑ done\n☐ open\n\nmap (https://e.example/m.png)',
    );
  });

  it.each(allRules.map(({ name }) => name))('has nothing to send to %s where nothing can be seen', (name) => {
    expect(listTexts('', name)).toEqual([]);
    expect(listTexts(' \n ', name)).toEqual([]);
    expect(listTexts('\u200B\u2060\uFEFF', name)).toEqual([]);
    expect(listTexts('**\u200B**\n\n\u3164', name)).toEqual([]);
  });

  it('loses U+0000 and halves of surrogate pairs, which no provider takes', () => {
    expect(one('a\0b\uD83D', 'telegram')).toBe('ab\uFFFD');
  });

  it.each([
    ['quotes', '>'.repeat(32_000)],
    ['lists', `${'- '.repeat(15_999)}a`],
    ['emphasis', '*a*b'.repeat(8000)],
    ['brackets', '['.repeat(32_000)],
  ])('reads pathological text, thousands of nested %s, without falling over', (_, markdown) => {
    const sent = listTexts(markdown, 'whatsapp').join('');
    expect(sent.replaceAll(/[\s*]/gu, '')).toBe(markdown.replaceAll(/[\s*]/gu, ''));
  });
});

describe('splitting at the limit of a provider', () => {
  it.each([
    ['a'.repeat(4096), 'telegram', 1],
    ['a'.repeat(4097), 'telegram', 2],
    [`${'a'.repeat(4095)}\u{1F600}`, 'telegram', 2],
    ['é'.repeat(500), 'instagram', 1],
    ['é'.repeat(501), 'instagram', 2],
    [`${'b'.repeat(99)}\n`.repeat(21), 'messenger', 2],
    ['x'.repeat(32_000), 'whatsapp', 8],
  ] as const)('counts as the provider does (%#)', (text, name, parts) => {
    const sent = listTexts(text, name);
    expect(sent).toHaveLength(parts);
    expect(sent.join('').replaceAll('\n', '')).toBe(text.replaceAll('\n', ''));
  });

  it('cuts at a line where there is one', () => {
    const [first, second] = listTexts(`${'b'.repeat(99)}\n`.repeat(21), 'messenger');
    expect(first).toMatch(/^(?:b{99}\n){19}b{99}$/u);
    expect(second).toBe('b'.repeat(99));
  });

  it('prefers the end of a paragraph', () => {
    const [first, second] = listTexts(`${'one '.repeat(400)}\n\n${'two\n'.repeat(200)}`, 'messenger');
    expect(first).toBe('one '.repeat(400).trim());
    expect(second).toMatch(/^two\n/u);
  });

  it('never parts what people see as one character', () => {
    const family = '\u{1F468}\u200D\u{1F469}\u200D\u{1F467}';
    expect(listTexts(`${'a'.repeat(4090)}${family}`, 'telegram')).toEqual(['a'.repeat(4090), family]);
    expect(listTexts('\u{1F600}'.repeat(2049), 'telegram')).toEqual(['\u{1F600}'.repeat(2048), '\u{1F600}']);
  });

  it('leaves no half of a pair behind where one character is longer than a message', () => {
    const parts = listTexts(`e${'\u0301'.repeat(3000)}\u{1F600}`, 'instagram');
    expect(parts.every((part) => part.isWellFormed() && Buffer.byteLength(part) <= 1000)).toBe(true);
    expect(parts.join('')).toBe(`e${'\u0301'.repeat(3000)}\u{1F600}`);
  });

  it.each(['whatsapp', 'slack'] as const)('closes a fence of %s and opens it again', (name) => {
    const line = `${'c'.repeat(49)}\n`;
    const parts = listTexts(`\`\`\`js\n${line.repeat(100)}\`\`\``, name);
    expect(parts).toHaveLength(2);
    for (const part of parts) expect(part).toMatch(/^```\n(?:c{49}\n)+```$/u);
    expect(parts.join('\n').match(/c{49}/gu)).toHaveLength(100);
  });

  it('closes tags and opens them again', () => {
    const parts = listTexts(`**${'word '.repeat(1200)}end**`, 'telegram');
    expect(parts).toHaveLength(2);
    for (const part of parts) expect(part).toMatch(/^<b>[^<]+<\/b>$/u);
    const code = listTexts(`\`\`\`js\n${'x = 1;\n'.repeat(800)}\`\`\``, 'telegram');
    expect(code).toHaveLength(2);
    for (const part of code) expect(part).toMatch(/^<pre><code class="language-js">[^<]+<\/code><\/pre>$/u);
  });

  it('keeps the indentation of code behind a cut', () => {
    const parts = renderParts(`\`\`\`\n${'    indented\n'.repeat(400)}\`\`\``, findRules('telegram'));
    expect(parts.map(({ plain }) => plain).join('\n')).toBe('    indented\n'.repeat(400).trimEnd());
  });

  it.each(['telegram', 'slack'] as const)('cuts before a link and not in it, for %s', (name) => {
    const parts = listTexts(`${'a'.repeat(3900)} [${'a long label '.repeat(20).trim()}](https://e.example/page)`, name);
    expect(parts).toHaveLength(2);
    expect(parts[0]).toBe('a'.repeat(3900));
    expect(parts[1]).toContain('https://e.example/page');
  });

  it.each(allRules.map(({ name }) => name))('loses and doubles no word on the way to %s', (name) => {
    const words = Array.from({ length: 3000 }, (_, index) => `w${String(index)}${index % 17 === 0 ? '.\n\n' : ' '}`).join('');
    const parts = renderParts(words, findRules(name));
    expect(parts.length).toBeGreaterThan(1);
    for (const form of ['text', 'plain'] as const)
      expect(parts.flatMap((part) => withoutNumber(part[form]).split(/\s+/u))).toEqual(words.trim().split(/\s+/u));
  });

  it('makes parts whose plain form fits too', () => {
    const parts = renderParts('[a](https://e.example/a/very/long/address) '.repeat(600), findRules('telegram'));
    expect(parts.every(({ plain }) => plain.length <= 4096)).toBe(true);
  });
});
