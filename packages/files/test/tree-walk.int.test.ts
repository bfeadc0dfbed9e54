import { appendFile, mkdir, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { temporaryDirectory } from '@concierge/testing';
import { readContent, walkTree, type TreeContent } from '../src/tree-walk.ts';

async function readBytes(content: TreeContent | undefined): Promise<Buffer> {
  return content === undefined ? Buffer.alloc(0) : readContent(content);
}

describe('a file that is changed while a tree is read', () => {
  it.each([
    { what: 'grows: what came later is left out', change: async (path: string) => appendFile(path, 'more'), left: 'content', cutShort: 0 },
    { what: 'shrinks: zeros stand for what went', change: async (path: string) => truncate(path, 3), left: 'con\0\0\0\0', cutShort: 1 },
    { what: 'is emptied', change: async (path: string) => truncate(path, 0), left: '\0'.repeat('content'.length), cutShort: 1 },
  ])('$what', async ({ change, left, cutShort }) => {
    await using folder = await temporaryDirectory();
    const path = join(folder.path, 'file.md');
    await writeFile(path, 'content');
    const cuts: string[] = [];
    const walk = { onCutShort: (name: string) => void cuts.push(name) };
    for await (const { content } of walkTree(folder.path, walk)) {
      await change(path);
      expect(content?.size).toBe('content'.length);
      expect((await readBytes(content)).toString()).toBe(left);
    }
    expect(cuts).toHaveLength(cutShort);
  });

  it('is whole when it is larger than one piece', async () => {
    await using folder = await temporaryDirectory();
    const bytes = Buffer.alloc(700_001, 'abc');
    await mkdir(join(folder.path, 'a'));
    await writeFile(join(folder.path, 'a', 'large.bin'), bytes);
    const read = new Map<string, Buffer>();
    for await (const { path, content } of walkTree(folder.path)) read.set(path, await readBytes(content));
    expect([...read.keys()]).toEqual(['a', 'a/large.bin']);
    expect(read.get('a/large.bin')?.equals(bytes)).toBe(true);
  });
});
