import { createHash } from 'node:crypto';
import { Worker } from 'node:worker_threads';
import { describe, expect, it, jest } from '@jest/globals';
import { eventually } from '@concierge/testing';
import { MemoryFiles, unusedContext } from '../../fixtures/tool-fixture.ts';
import type { Tool } from '../tool.ts';
import { edit, listFiles, read, write } from './file-tools.ts';
import { searchFiles } from './search-files.ts';

const signal = new AbortController().signal;
const using = (files: MemoryFiles, tool: Tool) => async (input: Record<string, unknown>) =>
  tool.run(input, { ...unusedContext, files, signal });

describe('read', () => {
  const lines = Array.from({ length: 12 }, (_, index) => `line ${String(index + 1)}`);
  const reading = using(
    new MemoryFiles({ 'a.md': `${lines.join('\n')}\n`, empty: '', wide: 'w'.repeat(5000), big: 'x'.repeat(90).concat('\n').repeat(2000) }),
    read,
  );

  it('numbers the lines', async () => {
    expect(await reading({ path: 'a.md' })).toBe(lines.map((line, index) => `${String(index + 1)}\t${line}`).join('\n'));
  });

  it('gives one page and names where the next begins', async () => {
    expect(await reading({ path: 'a.md', offset: 3, limit: 2 })).toBe('3\tline 3\n4\tline 4\n[lines 3 to 4 of 12; continue with offset 5]');
    expect(await reading({ path: 'a.md', offset: 11 })).toBe('11\tline 11\n12\tline 12');
  });

  it('explains what is wrong with an offset behind the end, and with an empty file', async () => {
    await expect(reading({ path: 'a.md', offset: 13 })).rejects.toThrow('a.md has 12 lines');
    expect(await reading({ path: 'empty' })).toBe('empty is empty.');
  });

  it('cuts long lines, and ends a page that grows too large before the cap would', async () => {
    expect(await reading({ path: 'wide' })).toContain('[line cut: 5000 characters]');
    const page = await reading({ path: 'big' });
    expect(Buffer.byteLength(page)).toBeLessThan(60 * 1024);
    expect(page).toMatch(/continue with offset \d+\]$/u);
  });
});

describe('write', () => {
  it('reports whether it made or replaced a file', async () => {
    const files = new MemoryFiles({});
    const writing = using(files, write);
    expect(await writing({ path: 'a', content: 'one\ntwo\n' })).toBe('Created a: 8 bytes, 2 lines.');
    expect(await writing({ path: 'a', content: '' })).toBe('Replaced a: 0 bytes, 0 lines.');
  });
});

describe('edit', () => {
  const text = 'alpha\nbeta\ngamma\ndelta\nepsilon\n';

  it('replaces the one passage and shows the lines as they were and are', async () => {
    const files = new MemoryFiles({ a: text });
    expect(await using(files, edit)({ path: 'a', find: 'gam', replace: 'GAM' })).toBe(
      'Changed a:\n@@ line 3 @@\n alpha\n beta\n-gamma\n+GAMma\n delta\n epsilon',
    );
    expect(files.texts.get('a')).toBe('alpha\nbeta\nGAMma\ndelta\nepsilon\n');
  });

  it.each([
    { where: 'at the start', find: 'alpha\n', replace: '', after: 'beta\ngamma\ndelta\nepsilon\n' },
    { where: 'at the end', find: 'epsilon\n', replace: 'end', after: 'alpha\nbeta\ngamma\ndelta\nend' },
    { where: 'over lines', find: 'beta\ngamma', replace: 'b$&', after: 'alpha\nb$&\ndelta\nepsilon\n' },
  ])('changes a passage $where', async ({ find, replace, after }) => {
    const files = new MemoryFiles({ a: text });
    await using(files, edit)({ path: 'a', find, replace });
    expect(files.texts.get('a')).toBe(after);
  });

  it('refuses a passage that is not there, and points to one that only differs in white space', async () => {
    const editing = using(new MemoryFiles({ a: 'if (x) {\n\treturn 1;\n}\n' }), edit);
    await expect(editing({ path: 'a', find: '    return 1;', replace: '' })).rejects.toThrow('Line 2 is alike but for white space');
    await expect(editing({ path: 'a', find: 'nothing', replace: '' })).rejects.toThrow('The passage is not in a. Read the file');
  });

  it('refuses a passage that is there twice and names the lines', async () => {
    await expect(using(new MemoryFiles({ a: 'x\ny\nx\n' }), edit)({ path: 'a', find: 'x', replace: 'z' })).rejects.toThrow(
      '2 times, at lines 1, 3',
    );
  });
});

describe('edit of a file with other line ends', () => {
  it('finds a passage whose line breaks are plain in a file of CRLF, and keeps the file’s own', async () => {
    const files = new MemoryFiles({ a: 'one\r\ntwo\r\nthree\r\n' });
    expect(await using(files, edit)({ path: 'a', find: 'one\ntwo', replace: 'one\n1.5\ntwo' })).toBe(
      'Changed a:\n@@ line 1 @@\n-one\n-two\n+one\n+1.5\n+two\n three',
    );
    expect(files.texts.get('a')).toBe('one\r\n1.5\r\ntwo\r\nthree\r\n');
    await using(files, edit)({ path: 'a', find: 'three\r\n', replace: '' });
    expect(files.texts.get('a')).toBe('one\r\n1.5\r\ntwo\r\n');
  });

  it('takes a file of both as it is, character by character', async () => {
    const files = new MemoryFiles({ a: 'one\r\ntwo\nthree' });
    await expect(using(files, edit)({ path: 'a', find: 'one\ntwo', replace: 'x' })).rejects.toThrow('is not in a');
    await using(files, edit)({ path: 'a', find: 'one\r\ntwo\n', replace: 'x\n' });
    expect(files.texts.get('a')).toBe('x\nthree');
  });

  it('reports when the numbers that read shows were copied along, and counts places that overlap', async () => {
    await expect(using(new MemoryFiles({ a: 'x' }), edit)({ path: 'a', find: '1\tx', replace: 'y' })).rejects.toThrow(
      'not part of the file',
    );
    await expect(using(new MemoryFiles({ a: 'aaa' }), edit)({ path: 'a', find: 'aa', replace: 'b' })).rejects.toThrow(
      '2 times, at lines 1.',
    );
  });

  it('refuses to change nothing', async () => {
    await expect(using(new MemoryFiles({ a: 'x' }), edit)({ path: 'a', find: 'x', replace: 'x' })).rejects.toThrow('are the same');
  });
});

/** As a repository has them: more than any list is long. */
const hiddenFiles = Object.fromEntries(Array.from({ length: 6000 }, (_, index) => [`.git/objects/${String(index)}`, 'hit']));

describe('list_files', () => {
  it('leaves out hidden names unless asked', async () => {
    const listing = using(new MemoryFiles({ a: '1', '.b/c': '2', 'd/.e': '3' }), listFiles);
    expect(await listing({})).toBe('a (1 bytes)');
    expect(await listing({ hidden: true })).toBe('a (1 bytes)\n.b/c (1 bytes)\nd/.e (1 bytes)');
    expect(await listing({ path: '.b' })).toBe('.b/c (1 bytes)');
  });

  it('shows all that is not hidden beside any number of hidden names', async () => {
    const listing = using(new MemoryFiles({ ...hiddenFiles, 'a.md': '1' }), listFiles);
    expect(await listing({ recursive: true })).toBe('a.md (1 bytes)');
    const all = await listing({ recursive: true, hidden: true });
    expect(all.startsWith('.git/objects/0 (3 bytes)\n')).toBe(true);
    expect(all.endsWith('\n[more than 500 entries; list a folder inside]')).toBe(true);
  });

  it('lists with sizes and takes . and / for the whole workspace', async () => {
    const listing = using(new MemoryFiles({ 'a.md': 'abc', 'skills/x/SKILL.md': 'y' }), listFiles);
    expect(await listing({ path: './' })).toBe('a.md (3 bytes)\nskills/x/SKILL.md (1 bytes)');
    expect(await listing({ path: 'skills/' })).toBe('skills/x/SKILL.md (1 bytes)');
  });
});

describe('search_files', () => {
  const files = new MemoryFiles({ 'a.md': 'Hello World\nbye\n', 'b.md': 'hello again\n', 'c.txt': `${'a'.repeat(40)}!` });
  const searching = using(files, searchFiles);

  it('ignores case unless the query has capital letters', async () => {
    expect(await searching({ query: 'hello' })).toBe('a.md:1: Hello World\nb.md:1: hello again');
    expect(await searching({ query: 'Hello' })).toBe('a.md:1: Hello World');
  });

  it('searches one file when the path names one', async () => {
    expect(await searching({ query: 'hello', path: 'b.md' })).toBe('b.md:1: hello again');
    expect(await searching({ query: 'nowhere' })).toBe('Nothing found in 3 files.');
  });

  it('takes every character of a plain query for itself', async () => {
    const marks = String.raw`!"#$%&'()*+,-./:;<=>?@[\]^_{|}~` + '`';
    const each = marks.split('');
    const marked = using(new MemoryFiles({ 'a.md': `a${marks}b\n${each.map((mark) => `x${mark}y\n`).join('')}` }), searchFiles);
    expect(await marked({ query: `a${marks}B`.toLowerCase() })).toBe(`a.md:1: a${marks}b`);
    for (const [index, mark] of each.entries()) {
      const line = `a.md:${String(index + 2)}: x${mark}y`;
      expect(await marked({ query: `x${mark}y` })).toBe(line);
      expect(await marked({ query: `x${mark}y`, whole_words: true })).toBe(line);
    }
  });

  it('takes regular expressions when asked, and refuses one that is none', async () => {
    expect(await searching({ query: '^by.$', regex: true })).toBe('a.md:2: bye');
    await expect(searching({ query: '(', regex: true })).rejects.toThrow('not a valid regular expression');
  });

  it('does not mind an expression that makes others backtrack without end', async () => {
    expect(await searching({ query: '(a+)+$', regex: true })).toBe('Nothing found in 3 files.');
  });

  it('does not mind globs that make others backtrack without end', async () => {
    const odd = `${'a'.repeat(120)}/${'a'.repeat(200)}`;
    const named = using(new MemoryFiles({ [odd]: 'hello', 'a.md': 'hello' }), searchFiles);
    expect(await named({ query: 'hello', globs: [`${'*a'.repeat(90)}b`, '*.md'] })).toBe('a.md:1: hello');
    expect(await named({ query: 'hello', globs: [`!${'{a,aa,*}'.repeat(24)}b`, `!${'**/*a'.repeat(30)}b`] })).toContain('a.md:1: hello');
  });

  it('refuses a glob that is none', async () => {
    await expect(searching({ query: 'hello', globs: ['[z-a]'] })).rejects.toThrow('A glob is not valid');
  });

  it('leaves the process to others while it looks for a text that is hard to find', async () => {
    const repeated = new MemoryFiles({ long: 'a'.repeat(2_000_000) });
    let ticks = 0;
    const timer = setInterval(() => (ticks += 1), 1);
    await using(repeated, searchFiles)({ query: `${'a'.repeat(499)}b${'a'.repeat(499)}` }).catch(() => 'given up');
    clearInterval(timer);
    expect(ticks).toBeGreaterThan(0);
  });

  it('stops an expression that takes too long all the same', async () => {
    const long = new MemoryFiles({
      long: createHash('shake256', { outputLength: 1_000_000 }).update('').digest('hex').replaceAll(/\d/gu, 'b'),
    });
    const query = ['a', 'b', 'c', 'd', 'e', 'f'].map((letter) => `[a-f]*${letter}[a-f]{900}[xy]`).join('|');
    await expect(using(long, searchFiles)({ query, regex: true })).rejects.toThrow('takes too long');
  });

  it('does not take a pause of this process for a slow expression', async () => {
    const asked = jest.spyOn(Worker.prototype, 'postMessage');
    const found = searching({ query: '^by.$', regex: true });
    await eventually(() => asked.mock.calls.length > 0);
    asked.mockRestore();
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 4000);
    expect(await found).toBe('a.md:2: bye');
  });

  it('refuses a query over several lines, which no line can match', async () => {
    await expect(searching({ query: 'Hello World\nbye' })).rejects.toThrow('line by line');
  });

  it('leaves out hidden and binary files, unless the path leads into what is hidden', async () => {
    const found = using(new MemoryFiles({ '.env': 'hit', 'a/.git/x': 'hit', 'a/b': 'hit', c: 'hit\u0000' }), searchFiles);
    expect(await found({ query: 'hit' })).toBe('a/b:1: hit');
    expect(await found({ query: 'hit', path: 'a/.git' })).toBe('a/.git/x:1: hit');
  });

  it('finds what stands beside any number of hidden files', async () => {
    const found = using(new MemoryFiles({ ...hiddenFiles, 'a.md': 'hit' }), searchFiles);
    expect(await found({ query: 'hit' })).toBe('a.md:1: hit');
  });

  it('keeps indentation, and shows lines around a match once', async () => {
    const found = using(new MemoryFiles({ x: 'a\n  hit\nb\nhit\nc\nd\ne\n\thit\r\n' }), searchFiles);
    expect(await found({ query: 'hit', context: 1 })).toBe(
      ['x-1- a', 'x:2:   hit', 'x-3- b', 'x:4: hit', 'x-5- c', '--', 'x-7- e', 'x:8: \thit'].join('\n'),
    );
  });

  it('reports when files were too large to be searched', async () => {
    const found = await using(new MemoryFiles({ x: 'hit'.repeat(1_000_000), y: 'hit' }), searchFiles)({ query: 'hit' });
    expect(found).toMatch(/^y:1: hit\n\[1 files over 2 MiB were left out/u);
  });

  it('ends before a result that is too long, and marks the cut', async () => {
    const found = await using(new MemoryFiles({ x: `${'hit '.repeat(70)}\n`.repeat(500) }), searchFiles)({ query: 'hit', limit: 500 });
    expect(Buffer.byteLength(found)).toBeLessThan(60 * 1024);
    expect(found).toContain('[there are more matches than fit');
  });

  it('reports when there are more matches than it shows', async () => {
    const found = await using(new MemoryFiles({ x: 'hit\n'.repeat(500), y: 'hit\n' }), searchFiles)({ query: 'hit' });
    expect(found.split('\n')).toHaveLength(201);
    expect(found).toContain('[there are more than 200 matches');
  });
});
