import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { armFailpoints } from '@concierge/runtime';
import { temporaryDirectory } from '@concierge/testing';
import { runFileSteps } from '../src/file-steps.ts';

/** More at once than the thread pool gets: from here on there is a thread. */
const CROWD = 40;

const publish = async (folder: string, name: string, content: string) =>
  runFileSteps([
    { do: 'create', path: join(folder, `.tmp-${name}-${content}`), content, isSynced: false },
    { do: 'link', from: join(folder, `.tmp-${name}-${content}`), to: join(folder, name) },
    { do: 'list', path: folder },
  ]);

describe.each([
  ['of a few, through the thread pool', 1],
  ['of many at once, in a thread', CROWD],
])('steps %s', (_name, crowd) => {
  let others = 0;
  /** Does `work` while others have their steps under way. */
  const amid = async <Result>(folder: string, work: () => Promise<Result>): Promise<Result> => {
    const doOther = async (): Promise<unknown> => {
      others += 1;
      return publish(folder, `other-${String(others)}`, 'x');
    };
    const [result] = await Promise.all([work(), ...Array.from({ length: crowd - 1 }, doOther)]);
    return result;
  };

  it('are done in their order, and what there was is listed', async () => {
    await using folder = await temporaryDirectory();
    const names = await amid(folder.path, async () => publish(folder.path, 'a.json', 'grüße 🎈'));
    expect(names).toEqual(expect.arrayContaining(['a.json', '.tmp-a.json-grüße 🎈']));
    expect(await readFile(join(folder.path, 'a.json'), 'utf8')).toBe('grüße 🎈');
    await amid(folder.path, async () =>
      runFileSteps([
        { do: 'rename', from: join(folder.path, 'a.json'), to: join(folder.path, 'b.json') },
        { do: 'remove', path: join(folder.path, '.tmp-a.json-grüße 🎈') },
        { do: 'remove', path: join(folder.path, 'was-never-there') },
      ]),
    );
    expect((await readdir(folder.path)).filter((name) => !name.includes('other'))).toEqual(['b.json']);
  });

  it('end with the first that fails, as the functions of Node do; those of others go on', async () => {
    await using folder = await temporaryDirectory();
    const settled = await Promise.allSettled(
      Array.from({ length: crowd + 1 }, async (_none, at) => publish(folder.path, 'taken.json', String(at))),
    );
    expect(settled.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    const failed = settled.find(({ status }) => status === 'rejected');
    expect(failed).toMatchObject({ reason: { code: 'EEXIST', syscall: 'link' } });
    const gone = join(folder.path, 'gone');
    const missing = amid(folder.path, async () => publish(gone, 'a.json', 'x'));
    await expect(missing).rejects.toMatchObject({ code: 'ENOENT', path: join(gone, '.tmp-a.json-x') });
  });

  it('stop between two of them at a fail point', async () => {
    await using folder = await temporaryDirectory();
    armFailpoints('between:throw');
    const path = join(folder.path, 'first');
    const steps = [
      { do: 'create', path, content: 'x', isSynced: false, passes: 'between' },
      { do: 'rename', from: path, to: join(folder.path, 'second') },
    ] as const;
    await expect(amid(folder.path, async () => runFileSteps(steps))).rejects.toThrow('fail point between');
    expect((await readdir(folder.path)).filter((name) => !name.includes('other'))).toEqual(['first']);
  });

  it('take contents of any length', async () => {
    await using folder = await temporaryDirectory();
    const content = 'ü'.repeat(5_000_000);
    await amid(folder.path, async () => runFileSteps([{ do: 'create', path: join(folder.path, 'long'), content, isSynced: false }]));
    expect(await readFile(join(folder.path, 'long'), 'utf8')).toBe(content);
  });
});
