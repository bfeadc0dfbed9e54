import { describe, expect, it } from '@jest/globals';
import { FrontMatterError, parseFrontMatter } from './front-matter.ts';

const ran = Symbol.for('front matter ran');
const program = `(globalThis[Symbol.for('front matter ran')] = true, {})`;

describe('front matter', () => {
  it('is the YAML between two lines of ---', () => {
    expect(parseFrontMatter('---\nname: a\nlist: [1, 2]\n---\n# Body\n\n---\nmore\n')).toEqual({
      data: { name: 'a', list: [1, 2] },
      body: '# Body\n\n---\nmore\n',
    });
    expect(parseFrontMatter('---\r\nname: a\r\n---\r\nBody').data).toEqual({ name: 'a' });
    expect(parseFrontMatter('\uFEFF---\nname: a\n---').data).toEqual({ name: 'a' });
    expect(parseFrontMatter('---\n---\nBody')).toEqual({ data: {}, body: 'Body' });
  });

  it('may be missing', () => {
    expect(parseFrontMatter('# Just text\n')).toEqual({ data: {}, body: '# Just text\n' });
    expect(parseFrontMatter('')).toEqual({ data: {}, body: '' });
  });

  it.each(['---js', '--- js', '---javascript', '---json', '---coffee', '---yaml', '----', '---\u00a0js', '---JS', '---\tjs'])(
    'is refused when it opens with %j, and not run',
    (fence) => {
      expect(() => parseFrontMatter(`${fence}\n${program}\n---\n`)).toThrow(FrontMatterError);
      expect(Reflect.get(globalThis, ran)).toBeUndefined();
    },
  );

  it('does not run what YAML can be made to call', () => {
    expect(() => parseFrontMatter(`---\na: !!js/function "function () { ${program} }"\n---\n`)).toThrow(FrontMatterError);
    expect(() => parseFrontMatter(`---\n---js\n${program}\n---\n`)).not.toThrow();
    expect(Reflect.get(globalThis, ran)).toBeUndefined();
  });

  it('reports broken YAML every time, not only the first', () => {
    const broken = '---\nname: [\n---\n';
    expect(() => parseFrontMatter(broken)).toThrow(FrontMatterError);
    expect(() => parseFrontMatter(broken)).toThrow(FrontMatterError);
  });

  it('is not shared between callers', () => {
    const text = '---\nlist: [1]\n---\n';
    const first = parseFrontMatter(text);
    Reflect.get(Object(first.data), 'list').push(2);
    expect(parseFrontMatter(text).data).toEqual({ list: [1] });
  });

  it('must be closed and of bounded length', () => {
    expect(() => parseFrontMatter('---\nname: a\n')).toThrow(FrontMatterError);
    expect(() => parseFrontMatter(`---\nname: ${'a'.repeat(70_000)}\n---\n`)).toThrow(FrontMatterError);
  });
});
