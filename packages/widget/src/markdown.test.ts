import { describe, expect, it } from '@jest/globals';
import { hostBeside, parseInline, parseMarkdown } from './markdown.ts';

const text = (words: string): object => ({ kind: 'text', text: words });

const item = (words: string, lists: readonly object[] = []): object => ({ line: [text(words)], lists });

describe('a line', () => {
  it.each([
    ['a **b** c', [text('a '), { kind: 'strong', children: [text('b')] }, text(' c')]],
    ['*a* and _b_', [{ kind: 'emphasis', children: [text('a')] }, text(' and '), { kind: 'emphasis', children: [text('b')] }]],
    ['**a *b***', [{ kind: 'strong', children: [text('a *b')] }, text('*')]],
    ['`a*b*`', [{ kind: 'code', text: 'a*b*' }]],
    ['[a](https://b.example/c)', [{ kind: 'link', href: 'https://b.example/c', label: 'a' }]],
    ['![a](https://b.example/c.png)', [{ kind: 'link', href: 'https://b.example/c.png', label: 'a' }]],
    ['see https://b.example/c.', [text('see '), { kind: 'link', href: 'https://b.example/c', label: 'https://b.example/c' }, text('.')]],
  ])('%s has its forms', (line, parts) => {
    expect(parseInline(line)).toEqual(parts);
  });

  it.each([
    'snake_case_name',
    '2 * 3 * 4',
    'a ** b **',
    '**half',
    '`half',
    '[half](http',
    '[a](javascript:alert(1))',
    '[a](data:text/html,x)',
    '[a](//b.example)',
    '[a](/b)',
    '[a](https://user:pass@b.example)',
    '<a href="x">y</a> &lt;',
    'xhttps://b.example',
  ])('%s stays as it is written', (line) => {
    expect(parseInline(line)).toEqual([text(line)]);
  });

  it('costs no more than its length, however hostile', () => {
    for (const sign of ['*', '_', '[', '`', '![', '[](', '**a', 'https://']) expect(parseInline(sign.repeat(20_000))).not.toEqual([]);
  });
});

describe('a text', () => {
  it('has paragraphs with line breaks, headings, quotes, lists and code', () => {
    const parsed = parseMarkdown('# One\na\nb\n\n> c\n- d\n- e\n3. f\n```js\n<g>\n```\nh');
    expect(parsed).toEqual([
      { kind: 'heading', lines: [[text('One')]] },
      { kind: 'paragraph', lines: [[text('a')], [text('b')]] },
      { kind: 'quote', lines: [[text('c')]] },
      { kind: 'list', start: null, items: [item('d'), item('e')] },
      { kind: 'list', start: 3, items: [item('f')] },
      { kind: 'code', text: '<g>' },
      { kind: 'paragraph', lines: [[text('h')]] },
    ]);
  });

  it('has tables, whose cells have their forms, as many in each row as in the head', () => {
    const parsed = parseMarkdown('Prices:\n| Size | **Price** |\n|---|:-:|\n| S | 1 |\n| M \\| L |\n| a | b | c |\n\nx | y');
    expect(parsed).toEqual([
      { kind: 'paragraph', lines: [[text('Prices:')]] },
      {
        kind: 'table',
        head: [[text('Size')], [{ kind: 'strong', children: [text('Price')] }]],
        rows: [
          [[text('S')], [text('1')]],
          [[text('M | L')], []],
          [[text('a')], [text('b')]],
        ],
      },
      { kind: 'paragraph', lines: [[text('x | y')]] },
    ]);
  });

  it('has lists in lists', () => {
    const list = (items: readonly object[], start: number | null = null): object => ({ kind: 'list', start, items });
    expect(parseMarkdown('- a\n  - b\n    1. c\n  - d\n- e\n1. f\n   - g')).toEqual([
      list([item('a', [list([item('b', [list([item('c')], 1)]), item('d')])]), item('e')]),
      list([item('f', [list([item('g')])])], 1),
    ]);
    expect(parseMarkdown('  - a\n- b\n          - c')).toEqual([list([item('a'), item('b', [list([item('c')])])])]);
  });

  it('costs no more than its length, however its lines begin', () => {
    for (const line of ['- a', '| a |', '|-|', `${' '.repeat(50)}- a`, '> a', '1. a'])
      expect(parseMarkdown(`${line}\n`.repeat(5000))).not.toEqual([]);
    expect(parseMarkdown(Array.from({ length: 500 }, (_, depth) => `${' '.repeat(depth * 2)}- a`).join('\n'))).toHaveLength(1);
  });

  it('has its code while the end of it has not come yet', () => {
    expect(parseMarkdown('```\na\n*b*')).toEqual([{ kind: 'code', text: 'a\n*b*' }]);
  });

  it.each(['', '\n\n', '-', '#', '>', '1.', '```', '\r\n', '* \n* '])('of %j does no harm', (given) => {
    expect(() => parseMarkdown(given)).not.toThrow();
  });
});

it('a label that is no address of the very host it leads to has that host beside it', () => {
  const href = 'https://evil.example/login';
  const besides = [
    'https://evil.example/other',
    'Log in',
    'https://bank.example/?from=evil.example',
    'https://evil.example.bank.example/',
    'https://evil.example@bank.example/',
    'https://bank.example/ https://evil.example/',
  ].map((label) => hostBeside({ href, label }));
  expect(besides).toEqual([null, ...Array.from({ length: 5 }, () => 'evil.example')]);
});
