import { readFile } from 'node:fs/promises';
import { describe, expect, it } from '@jest/globals';
import { Template, TemplateError } from './template.ts';

const declare = (variables: string, body: string): string => `---\nvariables:\n${variables}\n---\n${body}`;
const render = (variables: string, body: string, values: Record<string, unknown> = {}): string =>
  new Template('x.md', declare(variables, body)).render(values);

describe('a template', () => {
  it('puts values in their places, dotted names from objects in objects', () => {
    const variables = '  - {name: customer.name}\n  - {name: customer.address.city, required: false}\n  - {name: total, type: number}';
    const body =
      'Dear {{ customer.name }}{{#customer.address.city}} of {{customer.address.city}}{{/customer.address.city}}: {{total}}{{! note }}\n';
    expect(render(variables, body, { customer: { name: 'Ada', address: { city: 'Ulm' } }, total: 2.5 })).toBe('Dear Ada of Ulm: 2.5\n');
    expect(render(variables, body, { customer: { name: 'Ada' }, total: 0 })).toBe('Dear Ada: 0\n');
    expect(render(variables, body, { 'customer.name': 'Ada', total: 1 })).toBe('Dear Ada: 1\n');
  });

  it('goes through lists, of texts and of objects, and has words for none', () => {
    const variables = '  - {name: items, type: list}';
    const body = '{{#items}}\n- {{ . }}\n{{/items}}\n{{^items}}\nnothing\n{{/items}}\n';
    expect(render(variables, body, { items: ['a', 'b'] })).toBe('- a\n- b\n');
    expect(render(variables, body, { items: [] })).toBe('nothing\n');
    expect(render(variables, '{{#items}}{{ name }} {{/items}}', { items: [{ name: 'x' }, { name: 'y' }, {}] })).toBe('x y  ');
  });

  it('takes defaults, dates of YAML included, and leaves out what is optional', () => {
    const variables =
      '  - {name: day, type: date, default: 2026-03-31}\n  - {name: note, required: false}\n  - {name: loud, type: boolean, default: false}';
    const body = '{{ day }}{{ note }}{{#loud}}!{{/loud}}';
    expect(render(variables, body)).toBe('2026-03-31');
    expect(render(variables, body, { loud: true, note: null, day: '2026-04-01T10:00Z' })).toBe('2026-04-01T10:00Z!');
  });

  it('names everything that is unknown, missing or of another type at once, and what it takes', () => {
    const variables = [
      '  - {name: who, description: Whom it is for}',
      '  - {name: total, type: number}',
      '  - {name: day, type: date}',
      '  - {name: items, type: list, fields: [{name: what}, {name: price, type: number}]}',
      '  - {name: paid, type: boolean, required: false}',
      '  - {name: a.b}',
    ].join('\n');
    const values = {
      total: '12',
      day: '2026-02-30',
      items: [{ what: 'tea', price: 1, colour: 'red' }, 'milk'],
      paid: 'yes',
      wo: 'x',
      a: { b: 'x', c: 1 },
    };
    const attempt = (): string => render(variables, '', values);
    expect(attempt).toThrow(TemplateError);
    for (const problem of [
      '- who is missing: who (string): Whom it is for',
      '- total must be a number, without quotes, not a string',
      '- day must be a date as in "2026-03-31"',
      '- items has bad items: item 1: colour is unknown; item 2 must be an object with what, price',
      '- paid must be true or false',
      '- wo is unknown',
      '- a.c is unknown',
      'items (list of {what (string); price (number)})',
    ]) {
      expect(attempt).toThrow(problem);
    }
  });

  it('escapes values in HTML and nowhere else', () => {
    const text = declare('  - {name: who}', '<b>{{ who }}</b> {{{ who }}}');
    expect(new Template('x.md', text).render({ who: '<i>&"' })).toBe('<b><i>&"</b> <i>&"');
    expect(() => new Template('x.html', text)).toThrow('Use two braces');
    const html = new Template('x.HTML', declare('  - {name: who}', '<b title="{{ who }}">'));
    expect(html.render({ who: '"><script>' })).toBe('<b title="&quot;&gt;&lt;script&gt;">');
  });

  it.each([
    ['a name that is not declared', '{{ hwo }}', 'which its front matter does not declare'],
    ['a section that is not declared', '{{#hwo}}x{{/hwo}}', 'does not declare'],
    ['an undeclared name inside a condition', '{{#who}}{{ hwo }}{{/who}}', 'does not declare'],
    ['another template', '{{> secret }}', 'Templates know'],
    ['other delimiters', '{{=<% %>=}}<% who %>', 'Templates know'],
    ['a section that is not closed', '{{#who}}x', 'cannot be used: Unclosed section'],
    ['a tag that is not closed', '{{ who', 'cannot be used: Unclosed tag'],
    ['a list where a text should be', '{{ items }}', 'a list or an object where a text'],
    ['what an object inherits', '{{#items}}{{ constructor }}{{/items}}', 'inside a list'],
    ['what a list inherits', '{{#items}}{{ items.map }}{{/items}}', 'inside a list'],
    ['sections in sections without end', `${'{{#who}}'.repeat(9)}${'{{/who}}'.repeat(9)}`, 'deeper than 8 levels'],
  ])('refuses %s when it is read', (_, body, reason) => {
    expect(() => new Template('x.md', declare('  - {name: who}\n  - {name: items, type: list}', body))).toThrow(reason);
  });

  it.each([
    ['code in the front matter', '---js\n({})\n---\nx', 'only a line of just ---|must open with'],
    ['front matter that is no YAML', '---\nvariables: [\n---\n', 'is not YAML'],
    ['a type that there is not', declare('  - {name: x, type: money}', ''), 'must be one of string, number, boolean, date, list'],
    ['a field that there is not', declare('  - {name: x, kind: y}', ''), 'kind'],
    ['a name of objects’ own', declare('  - {name: __proto__}', ''), 'must be words joined by dots'],
    ['such a name behind a dot', declare('  - {name: a.constructor}', ''), 'must be words joined by dots'],
    ['a default of another type', declare('  - {name: x, type: number, default: y}', ''), 'is not of the type'],
    ['fields of what is no list', declare('  - {name: x, fields: [{name: y}]}', ''), 'only a list has fields'],
  ])('refuses %s', (_, text, reason) => {
    expect(() => new Template('x.md', text)).toThrow(new RegExp(reason, 'u'));
  });

  it('looks up nothing but what was given', () => {
    const values = { items: [{ name: 'x' }, 'text', ['inner'], 5] };
    expect(render('  - {name: items, type: list}', '{{#items}}[{{ map }}{{ toString }}{{ length }}{{ valueOf }}]{{/items}}', values)).toBe(
      '[][][1][]',
    );
    expect(() => render('  - {name: items, type: list}', '{{#items}}{{ inner }}{{/items}}', { items: [{ inner: {} }] })).toThrow(
      'a list or an object where a text should be',
    );
    const hostile: Record<string, unknown> = JSON.parse('{"who":"x","__proto__":{"polluted":"yes"}}');
    expect(() => render('  - {name: who}', '{{ who }}', hostile)).toThrow('__proto__ is unknown');
    const inItems: Record<string, unknown> = JSON.parse('{"items":[{"__proto__":{"polluted":"yes"}}]}');
    expect(render('  - {name: items, type: list}', '{{#items}}{{ polluted }}{{/items}}', inItems)).toBe('');
    expect({}).not.toHaveProperty('polluted');
  });

  it('does not run what a value contains', () => {
    expect(render('  - {name: who}', '{{ who }}', { who: '{{ who }}{{#x}}' })).toBe('{{ who }}{{#x}}');
  });

  it('refuses lists that multiply, and a result that is too long', () => {
    const nested = '{{#items}}{{#items}}{{#items}}x{{/items}}{{/items}}{{/items}}';
    const items = Array.from({ length: 100 }, () => 'x');
    expect(() => render('  - {name: items, type: list}', nested, { items })).toThrow('too long for this template');
    expect(() => render('  - {name: items, type: list}', '', { items: Array.from({ length: 1001 }, () => 1) })).toThrow('at most 1000 fit');
    expect(() => render('  - {name: who}', '{{ who }}{{ who }}', { who: 'x'.repeat(30_000) })).toThrow('has 60000 characters');
  });

  it('without front matter is text as it is, and takes nothing', () => {
    expect(new Template('x.txt', 'Hello\r\nthere\r\n').render({})).toBe('Hello\r\nthere\r\n');
    expect(() => new Template('x.txt', 'Hello').render({ who: 'x' })).toThrow('The template takes no variables.');
  });
});

describe('the example that every tenant begins with', () => {
  const path = new URL('../../../../tenant/starter/templates/follow-up.md', import.meta.url);

  it('renders with all of its variables and with the fewest', async () => {
    const template = new Template('follow-up.md', await readFile(path, 'utf8'));
    const steps = [{ what: 'Send the offer', who: 'Ben', until: '2026-12-01' }, { what: 'Think about it' }];
    expect(template.render({ contact: { name: 'Ada' }, subject: 'tea', steps })).toBe(
      'Hello Ada,\n\nthank you for the conversation about tea.\n\n- Send the offer (Ben), until 2026-12-01\n- Think about it\n\nKind regards\nYour team\n',
    );
    expect(template.render({ contact: { name: 'Ada' }, subject: 'tea', sender: 'Zoe' })).toContain('about tea.\n\n\nKind regards\nZoe');
  });
});
