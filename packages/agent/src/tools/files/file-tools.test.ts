import { describe, expect, it } from '@jest/globals';
import { MemoryFiles, unusedContext } from '../../fixtures/tool-fixture.ts';
import { edit } from './edit.ts';
import { listFiles } from './list-files.ts';
import { read } from './read.ts';
import { searchFiles } from './search-files.ts';
import type { Tool } from '../tool.ts';
import { write } from './write.ts';

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

  it('gives one page and says where the next begins', async () => {
    expect(await reading({ path: 'a.md', offset: 3, limit: 2 })).toBe('3\tline 3\n4\tline 4\n[lines 3 to 4 of 12; continue with offset 5]');
    expect(await reading({ path: 'a.md', offset: 11 })).toBe('11\tline 11\n12\tline 12');
  });

  it('says what is wrong with an offset behind the end, and with an empty file', async () => {
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
  it('says whether it made or replaced a file', async () => {
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

describe('list_files', () => {
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

  it('takes regular expressions when asked, and refuses one that is none', async () => {
    expect(await searching({ query: '^by.$', regex: true })).toBe('a.md:2: bye');
    await expect(searching({ query: '(', regex: true })).rejects.toThrow('not a valid regular expression');
  });

  it('stops an expression that backtracks without end', async () => {
    await expect(searching({ query: '(a+)+$', regex: true })).rejects.toThrow('takes too long');
  });

  it('says when there are more matches than it shows', async () => {
    const found = await using(new MemoryFiles({ x: 'hit\n'.repeat(500), y: 'hit\n' }), searchFiles)({ query: 'hit' });
    expect(found.split('\n')).toHaveLength(201);
    expect(found).toContain('[there are more than 200 matches');
  });
});
